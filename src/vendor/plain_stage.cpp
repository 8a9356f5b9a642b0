#include "vendor/plain_stage.h"
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/value_op.h"
#include "codegen/terms.h"
#include "loopnest/affine.h"
#include "loopnest/loop_nest.h"

namespace warploom::vendor {
namespace {
using codegen::Writer;
using loopnest::Access, loopnest::Affine, loopnest::Kind, loopnest::LoopNest, loopnest::Expr,
    loopnest::at;

constexpr int64_t kStrip = 64;  // neighbours that a CPU takes together
constexpr int64_t kParts = 16;  // sums of one row on a CPU
constexpr int64_t kMostTasks = 4096;
constexpr int kThreads = 256;              // of a block
constexpr int64_t kFewElements = 1 << 14;  // of sums: below, a block takes one
constexpr int64_t kLongSum = 256;

std::string_view type_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::bf16: return "bf16";
    case Dtype::f16: return "f16";
    case Dtype::e4m3: return "e4m3";
    case Dtype::e5m2: return "e5m2";
    case Dtype::tf32: return "float";
    default: return cpu_type(dtype);
  }
}

std::string number_text(double value) {
  if (std::isnan(value)) return "(infinity() - infinity())";
  if (std::isinf(value)) return value > 0 ? "infinity()" : "-infinity()";
  const bool is_whole = value == std::floor(value) && std::abs(value) < 1e15;
  return fmt::format("Real({:.17g}{})", value, is_whole ? ".0" : "");
}

std::string affine_text(const Affine& affine) {
  std::string out = fmt::format("{}ll", affine.begin);
  for (size_t axis = 0; axis < affine.steps.size(); ++axis)
    if (affine.steps[axis] != 0) out += fmt::format(" + {}ll * i{}", affine.steps[axis], axis);
  return out;
}

// A buffer that a stage reads, or writes.
struct Used {
  std::string name;
  std::string_view type;
  bool read;

  std::string element_type() const { return fmt::format("{}{}", read ? "const " : "", type); }
};

// The text of one stage.
class StageWriter {
 public:
  StageWriter(const Stages& stages, const Stage& stage, bool gpu);
  bool takes_lanes() const;
  StageText cpu(const std::string& name);
  StageText cuda(const std::string& name);

 private:
  std::string buffer(const std::string& name, std::string_view type, bool read);
  int strides_along(size_t axis) const;
  void coordinates(Writer& out, const std::string& number, const std::vector<size_t>& axes);
  std::string place_of(int value) const;
  std::string target_place() const;
  std::string value(Writer& out, int id);
  std::string value(Writer& out, int id, std::map<int, std::string>& known);
  std::string load(Writer& out, int id, const Access& load);

  int combined() const { return nest_.values[at(stage_.value)].operands[0]; }

  std::string combine(const std::string& a, const std::string& b) const;
  std::string identity() const;
  Writer::Block loops(Writer& out, size_t but);
  void lanes_of_elements(Writer& out, size_t x);
  void single(Writer& out);
  void lanes_of_reduction(Writer& out, size_t x);
  void parts_of_reduction(Writer& out);
  void block_reduction(Writer& out);
  void scan(Writer& out);

  const Stages& stages_;
  const LoopNest& nest_;
  const Stage& stage_;
  bool gpu_;
  bool reduces_ = false;
  bool scans_ = false;
  std::vector<size_t> outer_;
  std::vector<size_t> inner_;
  int64_t elements_ = 1;
  int64_t terms_ = 1;
  std::string target_;
  std::vector<Used> buffers_;
};

StageWriter::StageWriter(const Stages& stages, const Stage& stage, bool gpu)
    : stages_(stages), nest_(stages.nest), stage_(stage), gpu_(gpu) {
  const Expr& value = nest_.values[at(stage.value)];
  reduces_ = !stage.place && value.kind == Kind::reduce;
  scans_ = !stage.place && value.kind == Kind::scan;
  for (size_t axis = 0; axis < nest_.axes.size(); ++axis) {
    bool outer = value.varies[axis];
    if (stage.place) outer = stage.place->uses(axis);
    const bool is_scanned = scans_ && value.axes[0] == axis;
    if (outer && !is_scanned) outer_.push_back(axis);
  }
  if (reduces_ || scans_)
    for (const size_t axis : value.axes)
      inner_.push_back(axis);
  for (const size_t axis : outer_)
    elements_ *= nest_.axes[axis];
  for (const size_t axis : inner_)
    terms_ *= nest_.axes[axis];
  const std::string_view type = stage.place ? type_of(stage.place->dtype) : "Real";
  target_ = buffer(stage.to, type, false);
}

// Whether neighbours along the last axis of the result are computed together.
bool StageWriter::takes_lanes() const {
  if (scans_ || outer_.empty()) return false;
  return !reduces_ || strides_along(outer_.back()) >= strides_along(inner_.back());
}

StageText StageWriter::cpu(const std::string& name) {
  const bool lanes = takes_lanes();
  const int64_t last = lanes ? nest_.axes[outer_.back()] : 1;
  const int64_t strips = ceil_div(last, kStrip);
  const int64_t items = elements_ / last * strips;
  const int64_t each = ceil_div(items, kMostTasks);
  Writer body;
  body.indent();
  body.open("for (long long item = task * {0}; item < task * {0} + {0} && item < {1}; ++item) {{",
            each, items);
  if (lanes) {
    const size_t x = outer_.back();
    body.line("const long long begin = item % {} * {};", strips, kStrip);
    body.line("const long long count = {0} - begin < {1} ? {0} - begin : {1};", last, kStrip);
    const std::vector<size_t> all_but_last(outer_.begin(), outer_.end() - 1);
    coordinates(body, fmt::format("item / {}", strips), all_but_last);
    if (reduces_)
      lanes_of_reduction(body, x);
    else
      lanes_of_elements(body, x);
  } else {
    coordinates(body, "item", outer_);
    if (scans_)
      scan(body);
    else if (reduces_)
      parts_of_reduction(body);
    else
      single(body);
  }
  body.close();
  StageText out{.blocks = ceil_div(items, each)};
  out.text =
      fmt::format("extern \"C\" void {}(void* const* buffers, long long task, void*) {{\n", name);
  for (size_t i = 0; i < buffers_.size(); ++i) {
    const std::string type = buffers_[i].element_type();
    out.text += fmt::format("  {0}* b{1} = static_cast<{0}*>(buffers[{1}]);\n", type, i);
  }
  out.text += body.text() + "}\n";
  for (const Used& used : buffers_)
    out.buffers.push_back(used.name);
  return out;
}

StageText StageWriter::cuda(const std::string& name) {
  const bool together = reduces_ && elements_ <= kFewElements && terms_ >= kLongSum;
  Writer body;
  body.indent();
  if (together) {
    body.line("__shared__ Real parts[{}];", kThreads);
    body.line("const long long item = blockIdx.x;");
  } else {
    body.line("const long long item = blockIdx.x * {}ll + threadIdx.x;", kThreads);
    body.line("if (item >= {}ll) return;", elements_);
  }
  coordinates(body, "item", outer_);
  if (scans_)
    scan(body);
  else if (together)
    block_reduction(body);
  else if (reduces_)
    parts_of_reduction(body);
  else
    single(body);
  StageText out{.threads = kThreads};
  out.blocks = together ? elements_ : ceil_div(elements_, kThreads);
  std::string parameters;
  for (size_t i = 0; i < buffers_.size(); ++i) {
    const std::string_view comma = i ? ", " : "";
    parameters += fmt::format("{}{}* b{}", comma, buffers_[i].element_type(), i);
  }
  out.text = fmt::format("extern \"C\" __global__ void __launch_bounds__({}) {}({}) {{\n{}}}\n",
                         kThreads, name, parameters, body.text());
  for (const Used& used : buffers_)
    out.buffers.push_back(used.name);
  return out;
}

std::string StageWriter::buffer(const std::string& name, std::string_view type, bool read) {
  const auto known = std::ranges::find(buffers_, name, &Used::name);
  if (known != buffers_.end()) return fmt::format("b{}", known - buffers_.begin());
  buffers_.push_back({name, type, read});
  return fmt::format("b{}", buffers_.size() - 1);
}

// How many loads of what is combined have neighbours along an axis, less those that jump.
int StageWriter::strides_along(size_t axis) const {
  int out = 0;
  for (const Access& load : nest_.loads) {
    const int64_t stride = std::abs(load.stride(axis));
    if (stride == 1) ++out;
    if (stride > 1) --out;
  }
  return out;
}

void StageWriter::coordinates(Writer& out, const std::string& number,
                              const std::vector<size_t>& axes) {
  int64_t step = 1;
  for (size_t i = axes.size(); i-- > 0;) {
    std::string rest = fmt::format("({})", number);
    if (step != 1) rest += fmt::format(" / {}", step);
    if (i == 0)
      out.line("const long long i{} = {};", axes[i], rest);
    else
      out.line("const long long i{} = {} % {};", axes[i], rest, nest_.axes[axes[i]]);
    step *= nest_.axes[axes[i]];
  }
}

// The index in a buffer that holds what a value varies along.
std::string StageWriter::place_of(int value) const {
  std::string out = "0";
  for (size_t axis = 0; axis < nest_.axes.size(); ++axis) {
    if (!nest_.values[at(value)].varies[axis]) continue;
    std::string before;
    if (out != "0") before = fmt::format("({}) * {} + ", out, nest_.axes[axis]);
    out = fmt::format("{}i{}", before, axis);
  }
  return out;
}

std::string StageWriter::target_place() const {
  if (!stage_.place) return place_of(stage_.value);
  std::string out = "0";
  for (size_t d = 0; d < stage_.place->at.size(); ++d) {
    const std::string coordinate = affine_text(stage_.place->at[d]);
    out += fmt::format(" + ({}) * {}ll", coordinate, stage_.place->strides[d]);
  }
  return out;
}

// Statements that make a value at the indices at hand, and its name.
std::string StageWriter::value(Writer& out, int id) {
  std::map<int, std::string> known;
  return value(out, id, known);
}

std::string StageWriter::value(Writer& out, int id, std::map<int, std::string>& known) {
  if (const auto found = known.find(id); found != known.end()) return found->second;
  const Expr& of = nest_.values[at(id)];
  const std::string& kept = stages_.kept[at(id)];
  std::string text;
  if (!kept.empty() && kept != stage_.to) {
    text = fmt::format("{}[{}]", buffer(kept, "Real", true), place_of(id));
  } else if (of.kind == Kind::constant) {
    return known[id] = number_text(of.value);
  } else if (of.kind == Kind::index) {
    text = fmt::format("Real({})", affine_text(of.at));
  } else if (of.kind == Kind::load) {
    return known[id] = load(out, id, nest_.loads[at(of.load)]);
  } else {
    std::vector<std::string> operands;
    for (const int operand : of.operands)
      operands.push_back(value(out, operand, known));
    std::string function = fmt::format("v_{}", name_of(of.op));
    if (of.kind == Kind::round) function = fmt::format("round_{}", name_of(of.dtype));
    text = fmt::format("{}({})", function, fmt::join(operands, ", "));
  }
  out.line("const Real v{} = {};", id, text);
  return known[id] = fmt::format("v{}", id);
}

std::string StageWriter::load(Writer& out, int id, const Access& load) {
  const std::string from = buffer(load.name, type_of(load.dtype), true);
  std::string place = "0";
  std::vector<std::string> checks;
  for (size_t d = 0; d < load.at.size(); ++d) {
    std::string coordinate = fmt::format("({})", affine_text(load.at[d]));
    const bool looked_up = as_int(d) == load.gather_dim;
    if (looked_up) {
      const std::string table =
          buffer(load.gather_indices.name, type_of(load.gather_indices.dtype), true);
      out.line("const long long t{} = {}[{}];", id, table, coordinate);
      // Below 0 places count from the end.
      out.line("const long long k{0} = t{0} < 0 ? t{0} + {1}ll : t{0};", id, load.shape[d]);
      coordinate = fmt::format("k{}", id);
    }
    const auto [low, high] = nest_.range(load.at[d]);
    if (looked_up || low < 0 || high >= load.shape[d])
      checks.push_back(fmt::format("{0} >= 0 && {0} < {1}ll", coordinate, load.shape[d]));
    place += fmt::format(" + {} * {}ll", coordinate, load.strides[d]);
  }
  if (checks.empty()) {
    out.line("const Real v{} = load({}[{}]);", id, from, place);
  } else {
    out.line("const bool inside{} = {};", id, fmt::join(checks, " && "));
    out.line("const Real v{0} = inside{0} ? Real(load({1}[inside{0} ? {2} : 0])) : {3};", id, from,
             place, number_text(load.padding_value));
  }
  return fmt::format("v{}", id);
}

std::string StageWriter::combine(const std::string& a, const std::string& b) const {
  const ValueOp op = nest_.values[at(stage_.value)].op;
  return fmt::format("v_{}({}, {})", name_of(op), a, b);
}

std::string StageWriter::identity() const {
  return number_text(loopnest::identity_of(nest_.values[at(stage_.value)].op));
}

// Loops over reduced axes but the last `but`.
Writer::Block StageWriter::loops(Writer& out, size_t but) {
  for (size_t i = 0; i + but < inner_.size(); ++i)
    out.open("for (long long i{0} = 0; i{0} < {1}; ++i{0}) {{", inner_[i], nest_.axes[inner_[i]]);
  return {out, inner_.size() - but};
}

void StageWriter::lanes_of_elements(Writer& out, size_t x) {
  const auto block = out.block("for (long long l = 0; l < count; ++l) {{");
  out.line("const long long i{} = begin + l;", x);
  single(out);
}

void StageWriter::single(Writer& out) {
  const std::string made = value(out, stage_.value);
  out.line("store({} + ({}), {});", target_, target_place(), made);
}

void StageWriter::lanes_of_reduction(Writer& out, size_t x) {
  out.line("Real sum[{}];", kStrip);
  out.line("for (long long l = 0; l < {}; ++l) sum[l] = {};", kStrip, identity());
  {
    const auto block = loops(out, 0);
    const auto lanes = out.block("for (long long l = 0; l < count; ++l) {{");
    out.line("const long long i{} = begin + l;", x);
    const std::string made = value(out, combined());
    out.line("sum[l] = {};", combine("sum[l]", made));
  }
  const auto block = out.block("for (long long l = 0; l < count; ++l) {{");
  out.line("const long long i{} = begin + l;", x);
  out.line("store({} + ({}), sum[l]);", target_, target_place());
}

void StageWriter::parts_of_reduction(Writer& out) {
  const size_t last = inner_.back();
  const int64_t size = nest_.axes[last];
  out.line("Real sum[{}];", kParts);
  out.line("for (int l = 0; l < {}; ++l) sum[l] = {};", kParts, identity());
  {
    const auto block = loops(out, 1);
    out.line("long long first = 0;");
    out.open("for (; first + {0} <= {1}; first += {0}) {{", kParts, size);
    out.open("for (int l = 0; l < {}; ++l) {{", kParts);
    out.line("const long long i{} = first + l;", last);
    std::string made = value(out, combined());
    out.line("sum[l] = {};", combine("sum[l]", made));
    out.close();
    out.close();
    out.open("for (; first < {}; ++first) {{", size);
    out.line("const long long i{} = first;", last);
    made = value(out, combined());
    out.line("sum[0] = {};", combine("sum[0]", made));
    out.close();
  }
  out.line("for (int l = {}; l > 0; l /= 2)", kParts / 2);
  out.line("  for (int m = 0; m < l; ++m) sum[m] = {};", combine("sum[m]", "sum[m + l]"));
  out.line("store({} + ({}), sum[0]);", target_, target_place());
}

// Neighbouring threads take neighbouring terms.
void StageWriter::block_reduction(Writer& out) {
  out.line("Real sum = {};", identity());
  out.open("for (long long term = threadIdx.x; term < {}ll; term += {}) {{", terms_, kThreads);
  coordinates(out, "term", inner_);
  const std::string made = value(out, combined());
  out.line("sum = {};", combine("sum", made));
  out.close();
  out.line("parts[threadIdx.x] = sum;");
  out.line("__syncthreads();");
  out.open("for (int half = {}; half > 0; half /= 2) {{", kThreads / 2);
  out.line("if (threadIdx.x < half) parts[threadIdx.x] = {};",
           combine("parts[threadIdx.x]", "parts[threadIdx.x + half]"));
  out.line("__syncthreads();");
  out.close();
  out.line("if (threadIdx.x == 0) store({} + ({}), parts[0]);", target_, target_place());
}

void StageWriter::scan(Writer& out) {
  const size_t axis = inner_[0];
  const int64_t size = nest_.axes[axis];
  out.line("Real sum = {};", identity());
  out.open("for (long long step = 0; step < {}; ++step) {{", size);
  if (nest_.values[at(stage_.value)].reverse)
    out.line("const long long i{} = {} - step;", axis, size - 1);
  else
    out.line("const long long i{} = step;", axis);
  const std::string made = value(out, combined());
  out.line("sum = {};", combine("sum", made));
  out.line("store({} + ({}), sum);", target_, target_place());
  out.close();
}
}  // namespace

Shape Stages::shape_of(int value) const {
  Shape out;
  for (size_t axis = 0; axis < nest.axes.size(); ++axis)
    if (nest.values[at(value)].varies[axis]) out.push_back(nest.axes[axis]);
  return out;
}

StageText cpu_stage(const Stages& stages, const Stage& stage, const std::string& name) {
  return StageWriter(stages, stage, false).cpu(name);
}

StageText cuda_stage(const Stages& stages, const Stage& stage, const std::string& name) {
  return StageWriter(stages, stage, true).cuda(name);
}
}  // namespace warploom::vendor
