// Access rules: the last column of ops.def.
#include "graph/operators.h"
namespace warploom::graph::access {
namespace {
// An input of shape `in` aligned at the last axes of an output of `rank` axes.
Access aligned(const Shape& in, std::size_t rank) {
  Access access(in.size());
  for (std::size_t i = 0; i < in.size(); ++i)
    if (in[i] != 1) access[i].axis = static_cast<int>(rank - in.size() + i);
  return access;
}
// Axis i of the input is axis i of the output.
Access same(std::size_t rank) {
  Access access(rank);
  for (std::size_t i = 0; i < rank; ++i) access[i].axis = static_cast<int>(i);
  return access;
}
}  // namespace
#define WARPLOOM_ACCESS(name) std::optional<Access> name([[maybe_unused]] const Question& q, [[maybe_unused]] std::size_t input)

WARPLOOM_ACCESS(broadcast) { return aligned(q.in(input).shape, q.out().size()); }

WARPLOOM_ACCESS(first) { return input == 0 ? broadcast(q, 0) : std::nullopt; }

WARPLOOM_ACCESS(quantized) {  // scale and zero point: one for all, or one an index of the axis
  Access access = aligned(q.in(input).shape, q.out().size());
  if (input > 0 && q.in(input).shape.size() == 1 && q.in(input).shape[0] > 1)
    access[0].axis = static_cast<int>(q.axis(q.out().size()));
  return access;
}

WARPLOOM_ACCESS(none) { return std::nullopt; }

WARPLOOM_ACCESS(product) {
  const Shape& in = q.in(input).shape;
  if (input == 2) return broadcast(q, input);  // Gemm's C
  if (in.size() == 1) return Access(1);        // a vector: its one axis is summed
  // The output's axes: batch..., rows unless the left is a vector, columns unless the right is one.
  const std::size_t rows = q.in(0).shape.size() > 1 ? 1 : 0, columns = q.in(1).shape.size() > 1 ? 1 : 0;
  const std::size_t batch = q.out().size() - rows - columns;
  Access access = aligned(Shape(in.begin(), in.end() - 2), batch);
  const AxisSource kept{static_cast<int>(input == 0 ? batch : q.out().size() - 1)}, summed;
  const bool transposed = q.node.integer(input == 0 ? "transA" : "transB") != 0;
  const bool kept_first = (input == 0) != transposed;
  access.push_back(kept_first ? kept : summed);
  access.push_back(kept_first ? summed : kept);
  return access;
}

WARPLOOM_ACCESS(window) {
  const auto spec = window_spec(q);  // valid: infer() has asked before
  Access access(q.in(input).shape.size());
  const bool convolves = class_of(q.node.op) == OpClass::convolution;
  const bool by_channel = convolves && q.in(1).shape[1] == 1 && q.in(1).shape[0] == q.node.integer("group", 1);
  if (input == 1) access[0].axis = 1;
  if (input > 0 || !spec) return access;
  access[0].axis = 0;
  if (!convolves || by_channel) access[1].axis = 1;
  for (std::size_t i = 2; i < access.size(); ++i)
    access[i] = {static_cast<int>(i), -spec->before[i - 2], spec->strides[i - 2], spec->kernel[i - 2], spec->dilations[i - 2]};
  return access;
}

WARPLOOM_ACCESS(reduced) {
  const auto over = reduced_axes(q);
  if (input > 0 || !over) return std::nullopt;
  Access access = same(q.in(0).shape.size());
  int dropped = 0;
  for (std::size_t i = 0; i < access.size(); ++i) {
    const bool gone = std::binary_search(over->begin(), over->end(), static_cast<std::int64_t>(i));
    if (gone) access[i].axis = AxisSource::kWhole;
    else access[i].axis -= dropped;
    if (gone && q.node.integer("keepdims", 1) == 0) ++dropped;
  }
  return access;
}

WARPLOOM_ACCESS(padded) {
  const auto spec = pad_spec(q);
  if (input == 2) return aligned(q.in(input).shape, q.out().size());
  if (input != 0 || !spec) return std::nullopt;
  Access access = same(q.out().size());
  for (std::size_t i = 0; i < access.size(); ++i) access[i].begin = -spec->before[i];
  return access;
}

WARPLOOM_ACCESS(permute) {
  Access access(q.out().size());
  const std::vector<std::int64_t> perm = q.node.integers("perm");  // none: reversed
  for (std::size_t i = 0; i < access.size(); ++i)
    access[perm.empty() ? access.size() - 1 - i : static_cast<std::size_t>(perm[i])].axis = static_cast<int>(i);
  return access;
}

WARPLOOM_ACCESS(slice) {
  const auto spec = slice_spec(q);  // valid: infer() has asked before
  if (input > 0 || !spec) return std::nullopt;
  Access access = same(q.out().size());
  for (std::size_t i = 0; i < access.size(); ++i) {
    access[i].begin = spec->begin[i];
    access[i].step = spec->step[i];
  }
  return access;
}

WARPLOOM_ACCESS(concat) {
  Access access = same(q.out().size());
  const std::size_t axis = q.axis(access.size());
  for (std::size_t i = 0; i < input; ++i) access[axis].begin -= q.in(i).shape[axis];
  return access;
}

WARPLOOM_ACCESS(gather) {
  const std::size_t rank = q.in(0).shape.size(), axis = q.axis(rank), added = q.in(1).shape.size();
  Access access = same(input == 0 ? rank : added);
  for (std::size_t i = 0; i < access.size(); ++i)
    if (input == 1) access[i].axis += static_cast<int>(axis);
    else if (i > axis) access[i].axis += static_cast<int>(added) - 1;
    else if (i == axis) access[i] = {};
  return access;
}
}  // namespace warploom::graph::access
namespace warploom::graph {
std::int64_t terms_of(const Graph& graph, const Node& node) {
  constexpr std::array kCombines = {OpClass::contraction, OpClass::convolution, OpClass::window, OpClass::reduction};
  const OpClass kind = class_of(node.op);
  if (std::ranges::count(kCombines, kind) == 0) return 1;
  const Question q{graph, node};
  const std::size_t input = kind == OpClass::convolution ? 1 : 0;  // an output meets every weight of its channel
  const Access access = *operator_of(node.op).access(q, input);
  std::int64_t terms = 1;
  for (std::size_t i = 0; i < access.size(); ++i)
    terms *= access[i].axis == AxisSource::kWhole ? q.in(input).shape[i] : access[i].taps;
  return terms;
}
}  // namespace warploom::graph
