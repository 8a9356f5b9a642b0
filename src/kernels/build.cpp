// Regions, the families that cover them, what they hold to be legal; and the least work of a
// region.

#include <fmt/ranges.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/value_op.h"
#include "codegen/launch_list.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "kernels/config/constraints.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "loopnest/affine.h"
#include "loopnest/contraction.h"
#include "loopnest/loop_nest.h"

namespace warploom::kernels {
namespace {
using graph::Graph;
using graph::OpClass;
using graph::Tensor;
using graph::TensorId;

Error error_of(const KernelConfig& config, const FailedConstraint& failed) {
  const auto name = [&](size_t field) { return config.field(field).name; };
  std::vector<std::string_view> names;
  for (const size_t field : failed.fields)
    names.push_back(name(field));
  const char* message = "the schedule's fields cannot hold together";
  if (failed.code == ErrorCode::kResourceLimit)
    message = "what a block keeps does not fit in shared memory, or a core's L2 cache";
  const std::string remedy = fmt::format("change {}", fmt::join(names, ", or "));
  return {failed.code, message, config.text(), failed.expected, failed.found, remedy};
}
}  // namespace

Status Family::legal(const KernelConfig& config) const {
  const FailedConstraints failed = constraints(config);
  if (failed.empty()) return ok();
  return fail(error_of(config, failed[0]));
}

// Results of at most 16 bits take the faster exponential: it is off by 2^-22 + |x| 2^-24, and 0
// below 2^-126.
Region::Region(Graph primitive, Track of) : graph(std::move(primitive)), track(of) {
  auto nests = nests_of(graph);
  const bool is_narrow = track == Track::bf16 || track == Track::fp16 || track == Track::fp8;
  for (LoopNest& nest : nests)
    for (Expr& value : nest.values) {
      const bool is_exp = value.kind == Kind::apply && value.op == ValueOp::exp;
      if (is_exp && is_narrow) value.op = ValueOp::fast_exp;
    }
  nests_ = std::make_shared<const std::vector<LoopNest>>(std::move(nests));
}

Status Family::validate(const KernelConfig& config) const {
  for (const Field& field : space().fields) {
    const int64_t value = config.get(field.name).value_or(INT64_MIN);
    const int64_t least = std::ranges::min(field.values);
    const int64_t most = int64_t{1} << 30;  // so that products are numbers
    if (value >= least && value <= most) continue;
    const std::string expected =
        fmt::format("{} of {} to {}: {}", field.name, least, most, field.meaning);
    return fail({ErrorCode::kScheduleIllegal,
                 "a field of the schedule is too small or far too large", config.text(), expected,
                 std::to_string(value), "`show --what space` lists the fields and their values"});
  }
  return legal(config);
}

int64_t Space::size() const {
  int64_t count = 1;
  for (const Field& field : fields)
    if (__builtin_mul_overflow(count, std::ssize(field.values), &count)) return INT64_MAX;
  return count;
}

BufferSpec spec_of(const Tensor& tensor) {
  return {tensor.name, tensor.dtype, tensor.shape};
}

std::vector<FamilyPtr> families_for(const Region& region, const Capabilities& capabilities) {
  std::vector<FamilyPtr> out;
  const auto long_axis = [](const LoopNest& nest) {
    return std::ranges::any_of(nest.axes, [](auto size) { return size > kLongestAxis; });
  };
  if (capabilities.gpu && std::ranges::any_of(region.nests(), long_axis)) return out;
  for (const auto& bind : {im2win_family, matmul_wgmma_family, conv_wgmma_family, matmul_mma_family,
                           matmul_simt_family, matmul_cpu_family, conv_cpu_family,
                           rowwise_gpu_family, rowwise_cpu_family, direct_family})
    if (FamilyPtr family = bind(region, capabilities)) out.push_back(std::move(family));
  return out;
}

FamilyPtr family_for(const Region& region, const std::string& name,
                     const Capabilities& capabilities) {
  const auto all = families_for(region, capabilities);
  const auto found = std::ranges::find(all, name, &Family::name);
  return found == all.end() ? nullptr : *found;
}

namespace {
// Elements of each tensor that outputs are made of: movement may want a part alone, rows of a
// table, a slice.
std::vector<double> needed(const Graph& graph) {
  std::vector<double> out(graph.tensors.size());
  const auto all = [&](TensorId id) {
    return as_double(graph::element_count(graph.tensor(id).shape));
  };
  for (const auto id : graph.outputs)
    out[at(id)] = all(id);
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const OpClass what = class_of(node->op);
    const bool moves = what == OpClass::movement || what == OpClass::view;
    const bool one_by_one = moves || what == OpClass::pointwise;
    for (const auto id : node->inputs) {
      if (id == graph::kAbsent) continue;
      const double wanted = one_by_one ? out[at(node->outputs[0])] : all(id);
      out[at(id)] = std::min(all(id), out[at(id)] + wanted);
    }
  }
  return out;
}

// About as many different ones as a nest reads; of those that a table chooses nothing is known.
double elements_of(const LoopNest& nest, const Access& load) {
  double count = load.gather_dim < 0 ? 1 : HUGE_VAL;
  for (const Affine& dim : load.at) {
    const auto [low, high] = nest.range(dim);
    double along = 1;
    for (size_t a = 0; a < nest.axes.size(); ++a)
      if (dim.steps[a] != 0) along *= as_double(nest.axes[a]);
    count *= std::min(as_double(high - low + 1), along);
  }
  return count;
}
}  // namespace

Work work_of(const Region& region) {
  Work work;
  const Graph& graph = region.graph;
  const auto elements = needed(graph);
  std::map<std::string, double> loaded;
  for (const LoopNest& nest : region.nests())
    for (const Access& load : nest.loads)
      loaded[load.name] += elements_of(nest, load);
  for (size_t i = 0; i < graph.tensors.size(); ++i) {
    const Tensor& tensor = graph.tensors[i];
    const auto id = static_cast<TensorId>(i);
    const bool given = std::ranges::find(graph.inputs, id) != graph.inputs.end();
    double count = elements[i];
    if (!region.nests().empty()) count = std::min(count, loaded[tensor.name]);
    if (given || tensor.constant) work.bytes += count * bits_of(tensor.dtype) / 8;
  }
  for (const auto id : graph.outputs)
    work.bytes += as_double(graph::byte_count(graph.tensor(id)));
  for (const graph::Node& node : graph.nodes) {
    if (!multiplies(class_of(node.op))) continue;
    const auto terms = as_double(graph::terms_of(graph, node));
    work.flops += 2.0 * elements[at(node.outputs[0])] * terms;
  }
  if (const auto c = contraction_of(region.nests(), true, Results::several))
    work.flops *= part_within(*c);
  return work;
}
}  // namespace warploom::kernels
