// The text of one run of statements that share a loop (cpu_fusion.cpp says which do):
//
//   { ranges of rows that lie partly outside their tensors
//     loops over rows, where some statement asks where a row ends
//       values that stay the same along a row; what reductions and scans begin with
//       the loop over vectors: the statements, then stores of what later statements want
//       results of reductions
//   }
#include "codegen/cpu_fused_loop.h"
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/value_op.h"
#include "codegen/cpu_emitter.h"
#include "codegen/terms.h"
#include "tile/index.h"
#include "tile/print.h"
#include "tile/program.h"

namespace warploom::codegen {
CpuEmitter::FusedLoop::FusedLoop(CpuEmitter& emitter, const Body& body, const Run& run,
                                 std::span<const Run> later)
    : out_(emitter),
      body_(body),
      run_(run),
      later_(later),
      statements_(Statements(body).subspan(run.begin, run.end - run.begin)),
      shape_(emitter.tensor(run.walked).shape),
      along_(vector_dim_of(shape_)),
      flat_(run.shape.size() == 1),
      rows_(!flat_ && run.rows),
      extent_(extent_of_loop()),
      single_(extent_ == 1),
      ragged_(!single_ && extent_ % emitter.lanes_ != 0),
      parts_(partial_results()),
      v_(emitter.fresh("v")),
      u_(emitter.fresh("u")),
      w_(emitter.fresh("w")),
      step_(single_ ? "" : " + " + v_),
      ahead_(run.reverse ? "prefetch_back" : "prefetch") {}

int64_t CpuEmitter::FusedLoop::extent_of_loop() const {
  if (flat_) return run_.shape[0];
  if (rows_) return shape_[along_];
  return out_.layout(run_.walked).floats - out_.lanes_;
}

int64_t CpuEmitter::FusedLoop::partial_results() const {
  if (run_.reduced.empty() || ragged_ || run_.scans) return 1;
  const int64_t vectors = extent_ / out_.lanes_;
  for (const int64_t parts : {4, 2})
    if (vectors % parts == 0) return parts;
  return 1;
}

void CpuEmitter::FusedLoop::write() {
  Writer& text = out_.out_;
  out_.known_.clear();
  for (const Statement& each : statements_)
    text.line("// {}", print(out_.program_, each));
  text.open("{{");
  find_partial_rows();
  if (rows_) loops_ = out_.open_loops(shape_, along_, along_);
  keep_what_stays();
  open_vectors();
  for (const Statement& each : statements_)
    write(each);
  keep_changes();
  prefetch_rows();
  if (parts_ > 1) text.close();
  if (!single_) text.close();
  for (const Statement& each : statements_)
    if (const auto* reduce = each.as<Reduce>()) write_result(each.id, *reduce);
  for (size_t i = 0; i <= loops_.size(); ++i)
    text.close();
}

// Copies from memory whose elements are apart or partly outside, or whose last vector is a part of
// one: begin and end of what is there.
void CpuEmitter::FusedLoop::find_partial_rows() {
  for (const Statement& each : statements_) {
    const auto* copy = each.as<Copy>();
    if (!copy || single_ || out_.tensor(copy->src.tensor).scope != Scope::global) continue;
    const auto row = out_.row_of(copy->src);
    if (!row || (row->box.empty() && row->step == 1 && !ragged_)) continue;
    const std::string range = row_range(*row);
    const std::string fill = float_text(copy->fill);
    std::string& load = partial_rows_[each.id];
    load = fmt::format("wl::load_row_at<{}>({}, {}, {}, {})", row->step, row->pointer, v_, range,
                       fill);
    if (row->exists.empty()) continue;
    const std::string exists = out_.fresh("exists");
    out_.out_.line("const bool {} = {};", exists, row->exists);
    load = fmt::format("{} ? {} : wl::splat({})", exists, load, fill);
  }
}

std::string CpuEmitter::FusedLoop::row_range(const Row& row) {
  if (row.box.empty()) return fmt::format("0, {}", extent_);
  const std::string box = out_.fresh("box");
  out_.out_.line("const wl::Box {} = {};", box, row.box);
  return fmt::format("{0}.col_begin, {0}.col_end", box);
}

bool CpuEmitter::FusedLoop::stays_along_a_row(TensorId id) const {
  const Tensor& tensor = out_.tensor(id);
  if (single_ || tensor.scope != Scope::reg) return false;
  return rows_ ? tensor.shape[along_] == 1 : element_count(tensor.shape) == 1;
}

void CpuEmitter::FusedLoop::keep_what_stays() {
  for (const Statement& each : statements_) {
    for (const TensorId id : uses_of(out_.program_, each).reads) {
      if (!stays_along_a_row(id)) continue;
      const std::string place = out_.element(id, loops_);
      value_[id] = local(fmt::format("wl::splat(*({}))", place), id);
    }
    begin(each);
  }
}

// What a reduction or scan begins with.
void CpuEmitter::FusedLoop::begin(const Statement& statement) {
  const auto identity = [](ReduceOp op) {
    return fmt::format("wl::splat({})", float_text(reduction_of(op).identity));
  };
  if (const auto* reduce = statement.as<Reduce>()) {
    const std::string name = out_.fresh(out_.tensor(reduce->dst).name);
    total_[statement.id] = name;
    const std::vector<std::string> all(parts_, identity(reduce->op));
    out_.out_.line("wl::vf {}[] = {{{}}};", name, fmt::join(all, ", "));
  }
  if (const auto* scan = statement.as<Scan>()) {
    const std::string name = out_.fresh("before");
    total_[statement.id] = name;
    out_.out_.line("wl::vf {} = {};", name, identity(scan->op));
  }
}

void CpuEmitter::FusedLoop::open_vectors() {
  Writer& text = out_.out_;
  const bool few = extent_ / out_.lanes_ <= 8;
  // Written out, it is known of each vector of a window's row whether it lies inside.
  const bool knows_more = rows_ || !partial_rows_.empty();
  if (knows_more && parts_ == 1 && few) text.line("#pragma GCC unroll 8");
  if (parts_ > 1) {
    text.open("for (long {0} = 0; {0} < {1}; {0} += {2} * wl::kLanes) {{", w_, extent_, parts_);
    text.line("#pragma GCC unroll {}", parts_);
    text.open("for (long {0} = 0; {0} < {1}; ++{0}) {{", u_, parts_);
    text.line("const long {} = {} + {} * wl::kLanes;", v_, w_, u_);
  } else if (run_.reverse) {
    const int64_t last_vector = (extent_ - 1) / out_.lanes_ * out_.lanes_;
    text.open("for (long {0} = {1}; {0} >= 0; {0} -= wl::kLanes) {{", v_, last_vector);
  } else if (!single_) {
    text.open("for (long {0} = 0; {0} < {1}; {0} += wl::kLanes) {{", v_, extent_);
  }
}

// The local that has what the tensor holds at this place; loaded where it is first read.
std::string CpuEmitter::FusedLoop::current(TensorId id) {
  const auto found = value_.find(id);
  if (found != value_.end()) return found->second;
  const auto memory = out_.aliases_.find(id);
  const bool aliased = memory != out_.aliases_.end();
  const std::string row = aliased ? memory->second.pointer : out_.element(id, loops_);
  const std::string from = row + step_;
  const char* load = single_ ? "wl::splat(*" : "wl::load(";
  const std::string& value = value_[id] = local(load + from + ")", id);
  if (aliased && std::exchange(memory->second.prefetch, false))
    fetch_ahead(row, memory->second.jump, memory->second.streaming);
  return value;
}

std::string CpuEmitter::FusedLoop::coordinate(const Value& value, const Map& map) {
  const size_t fast = vector_dim_of(out_.tensor(map.dst).shape);
  const bool walked = !single_ && as_size(value.axis) == fast;
  Index at = value.shift;
  for (const Loop& loop : loops_)
    if (as_int(loop.dim) == value.axis) at = at + Index::variable(loop.variable);
  if (walked) at = at + Index::variable(v_);
  const char* call = walked ? "counted" : "splat";
  return local(fmt::format("wl::{}({})", call, at.text()), map.dst);
}

// A value of the tensor's type already.
void CpuEmitter::FusedLoop::set(TensorId id, const std::string& to) {
  value_[id] = to;
  changed_[id] = nullptr;
  out_.aliases_.erase(id);
}

void CpuEmitter::FusedLoop::set_copied(const Statement& statement, const Copy& copy,
                                       const std::string& to) {
  const TensorId id = copy.dst.tensor;
  const Tensor& src = out_.tensor(copy.src.tensor);
  const Dtype dtype = out_.tensor(id).dtype;
  const bool exact = src.dtype == dtype || !is_narrow(dtype);
  set(id, exact ? to : local(rounded(dtype, to), id));
  const bool whole_row = !single_ && !ragged_ && !partial_rows_.contains(statement.id);
  if (src.scope != Scope::reg && whole_row) changed_[id] = &statement;
}

void CpuEmitter::FusedLoop::write(const Statement& statement) {
  if (const auto* fill = statement.as<Fill>()) {
    const std::string value = fmt::format("wl::splat({})", float_text(fill->value));
    const Dtype dtype = out_.tensor(fill->dst).dtype;
    set(fill->dst, is_narrow(dtype) ? local(rounded(dtype, value), fill->dst) : value);
  }
  if (const auto* map = statement.as<Map>()) write(*map);
  if (const auto* reduce = statement.as<Reduce>()) write(statement.id, *reduce);
  if (const auto* scan = statement.as<Scan>()) write(statement.id, *scan);
  if (const auto* copy = statement.as<Copy>()) write(statement, *copy);
}

void CpuEmitter::FusedLoop::write(const Map& map) {
  const auto leaf = [&](const Value& one) {
    return one.kind == Value::Kind::coordinate ? coordinate(one, map) : current(one.tensor);
  };
  const Tensor& dst = out_.tensor(map.dst);
  const std::string value = out_.value_text(map.value, leaf, dst.name);
  set(map.dst, is_narrow(dst.dtype) ? local(rounded(dst.dtype, value), map.dst) : value);
}

// The elements of a vector that lie inside the row; `beyond` for the others.
std::string CpuEmitter::FusedLoop::first_of(const std::string& vector, double beyond) const {
  return fmt::format("wl::first({}, {} - {}, {})", vector, extent_, v_, float_text(beyond));
}

void CpuEmitter::FusedLoop::write(StatementId id, const Reduce& reduce) {
  const std::string part = fmt::format("{}[{}]", total_[id], parts_ > 1 ? u_ : "0");
  const Reduction& how = reduction_of(reduce.op);
  std::string what = current(reduce.src);
  if (ragged_) what = first_of(what, how.identity);
  out_.out_.line("{0} = wl::{1}({2}, {0});", part, name_of(how.combine), what);
  out_.aliases_.erase(reduce.dst);
}

void CpuEmitter::FusedLoop::write(StatementId id, const Scan& scan) {
  const Reduction& how = reduction_of(scan.op);
  const std::string before = total_[id];
  const std::string combine = fmt::format("wl::{}", name_of(how.combine));
  std::string what = current(scan.src);
  if (ragged_ && run_.reverse) what = first_of(what, how.identity);
  const std::string identity = fmt::format("wl::splat({})", float_text(how.identity));
  const std::string prefixes =
      fmt::format("wl::prefixes<{}, {}>({}, {})", combine, run_.reverse, what, identity);
  const std::string own = out_.local(prefixes, "own");
  const std::string value = local(fmt::format("{}({}, {})", combine, before, own), scan.dst);
  const Dtype dtype = out_.tensor(scan.dst).dtype;
  set(scan.dst, is_narrow(dtype) ? local(rounded(dtype, value), scan.dst) : value);
  out_.out_.line("{0} = {1}({0}, wl::last<{2}>({3}, wl::lane_numbers{{}}));", before, combine,
                 run_.reverse, own);
}

void CpuEmitter::FusedLoop::write(const Statement& statement, const Copy& copy) {
  if (out_.tensor(copy.dst.tensor).scope != Scope::reg) return store_row(copy);
  if (out_.tensor(copy.src.tensor).scope == Scope::reg)
    return set_copied(statement, copy, current(copy.src.tensor));
  set_copied(statement, copy, loaded(statement.id, copy));
}

std::string CpuEmitter::FusedLoop::loaded(StatementId id, const Copy& copy) {
  const auto part = partial_rows_.find(id);
  if (part != partial_rows_.end()) return local(part->second, copy.dst.tensor);
  const std::string from = out_.row_pointer(copy.src) + step_;
  const char* load = single_ ? "wl::splat(wl::load_one({}))" : "wl::load({})";
  return local(fmt::format(fmt::runtime(load), from), copy.dst.tensor);
}

void CpuEmitter::FusedLoop::store_row(const Copy& copy) {
  const Tensor& src = out_.tensor(copy.src.tensor);
  const Tensor& dst = out_.tensor(copy.dst.tensor);
  const bool may_stream = dst.scope == Scope::global && dst.dtype == Dtype::f32;
  const bool streaming = copy.streaming && may_stream && !single_ && !ragged_;
  out_.streams_ |= streaming;
  std::string what = current(copy.src.tensor);
  if (dst.scope == Scope::shared && src.dtype != dst.dtype) what = rounded(dst.dtype, what);
  const char* how = streaming ? "stream" : "store";
  if (single_) {
    how = "store_one";
    what += "[0]";
  } else if (ragged_) {
    how = "store_first";
    what += fmt::format(", wl::min({} - {}, wl::kLanes)", extent_, v_);
  }
  out_.out_.line("wl::{}({}{}, {});", how, out_.row_pointer(copy.dst), step_, what);
}

// What later statements want goes into its array, or stays where a copy found it.
void CpuEmitter::FusedLoop::keep_changes() {
  const bool padded = !rows_ || along_ + 1 == shape_.size();
  for (const auto& [id, by] : changed_) {
    if (!out_.wanted_.at(statements_.back().id)[id]) continue;
    const Copy* copy = by ? by->as<Copy>() : nullptr;
    if (copy && out_.memory_serves(*copy, body_, later_))
      out_.aliases_[id] = {out_.row_pointer(copy->src),
                           walks(*copy) && !out_.next_turns_.contains(by->id), jump(*copy),
                           copy->streaming};
    else
      out_.store(out_.element(id, loops_) + step_, value_[id], v_, extent_, padded);
  }
}

// A single element is kept in all lanes of its vector, so that the vector that a map loads next was
// written as one.
void CpuEmitter::FusedLoop::write_result(StatementId id, const Reduce& reduce) {
  const std::string combine(name_of(reduction_of(reduce.op).combine));
  const std::string across = fmt::format("wl::splat(wl::across<wl::{}>({}))", combine, total_[id]);
  const std::string to = out_.element(reduce.dst, loops_);
  const std::string value = rounded(out_.tensor(reduce.dst).dtype, across);
  if (rows_)
    out_.out_.line("wl::store_one({}, {}[0]);", to, value);
  else
    out_.out_.line("wl::store({}, {});", to, value);
}

void CpuEmitter::fused(const Body& body, const Run& run, std::span<const Run> later) {
  FusedLoop(*this, body, run, later).write();
}
}  // namespace warploom::codegen
