// Operators that combine elements: reductions, scans, windows, convolutions and products.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/value_op.h"
#include "graph/graph.h"
#include "loopnest/affine.h"
#include "loopnest/graph_reader.h"
#include "loopnest/loop_nest.h"

namespace warploom::loopnest {
using graph::Node, graph::OpClass, graph::OpKind, graph::Shape, graph::TensorId;

namespace {
ValueOp operation_of(OpKind reduction) {
  switch (reduction) {
    case OpKind::ReduceMax:
    case OpKind::MaxPool: return ValueOp::max;
    case OpKind::ReduceMin: return ValueOp::min;
    case OpKind::ReduceProd: return ValueOp::mul;
    default: return ValueOp::add;
  }
}
}  // namespace

GraphReader::MaybeValue GraphReader::read_reduction(const Node& node, const Coordinates& at) {
  const TensorId id = node.inputs[0];
  const Shape& shape = tensor(id).shape;
  std::vector<bool> reduced(shape.size(), false);
  auto from = source_of(node, 0, at, [&](size_t d, int64_t) {
    reduced[d] = true;
    return Affine{};
  });
  if (!from) return std::nullopt;
  std::set<TensorId> seen;
  if (const auto known = coordinates_read_before(id, {*from, reduced}, seen)) {
    from = known;
  } else {
    for (size_t d = 0; d < shape.size(); ++d)
      if (reduced[d]) (*from)[d] = new_axis(shape[d]);
  }
  const MaybeValue operand = read(id, *from);
  if (!operand) return std::nullopt;
  Coordinates over;
  for (size_t d = 0; d < shape.size(); ++d)
    if (reduced[d]) over.push_back((*from)[d]);
  return exprs_.reduce_as(result_type(node), operation_of(node.op), *operand, stepped_axes(over));
}

// Coordinates of a pattern at which a pointwise chain that ends in `id` reads already: a reduction
// then goes over axes that are there. So the sum of a softmax runs along the axis of its output.
std::optional<Coordinates> GraphReader::coordinates_read_before(TensorId id, const Pattern& pattern,
                                                                std::set<TensorId>& seen) const {
  if (!seen.insert(id).second) return std::nullopt;
  const Shape& shape = tensor(id).shape;
  if (const auto found = read_at_.find(id); found != read_at_.end())
    for (const Coordinates& at : found->second)
      if (matches(at, pattern, shape)) return at;
  if (is_stored(id)) return std::nullopt;
  const Node& node = producer_of(id);
  if (class_of(node.op) != OpClass::pointwise) return std::nullopt;
  for (const TensorId from : node.inputs) {
    if (from == graph::kAbsent || tensor(from).shape != shape) continue;
    if (auto at = coordinates_read_before(from, pattern, seen)) return at;
  }
  return std::nullopt;
}

bool GraphReader::matches(const Coordinates& at, const Pattern& pattern, const Shape& shape) const {
  const auto used = stepped_axes(at);
  const auto in_one_dimension = [&](size_t axis) { return std::ranges::count(used, axis) == 1; };
  for (size_t d = 0; d < at.size(); ++d) {
    if (!pattern.whole[d]) {
      if (at[d] != pattern.at[d]) return false;
      continue;
    }
    if (!axes_.covers(at[d], shape[d])) return false;
    if (!std::ranges::all_of(stepped_axes(at[d]), in_one_dimension)) return false;
  }
  return true;
}

// Along one axis, from the end of the dimension where the scan begins; backwards along one that
// turns the dimension round.
GraphReader::MaybeValue GraphReader::read_scan(const Node& node, const Coordinates& at) {
  const bool reverse = node.integer("reverse") != 0;
  size_t dim = 0;
  int64_t size = 1;
  const auto from = source_of(node, 0, at, [&](size_t d, int64_t whole) {
    dim = d;
    size = whole;
    return at[d];
  });
  const MaybeValue operand = from ? read(node.inputs[0], *from) : std::nullopt;
  if (size == 1 || !operand) return operand;
  const auto axes = stepped_axes(at[dim]);
  const auto [low, high] = nest_.range(at[dim]);
  const bool from_its_end = reverse ? high + 1 == size : low == 0;
  if (axes.size() != 1 || low < 0 || high >= size || !from_its_end) return std::nullopt;
  const int64_t step = at[dim].steps[axes[0]];
  if (std::ranges::count(stepped_axes(at), axes[0]) != 1 || std::abs(step) != 1)
    return std::nullopt;
  const Dtype dtype = result_type(node);
  const bool integers = is_integer(dtype);
  const int term = integers ? exprs_.to_integer(*operand, dtype) : exprs_.to_float(*operand);
  Expr scan{.kind = Kind::scan, .operands = {term}, .axes = axes, .integers = integers};
  scan.dtype = integers ? Dtype::i64 : Dtype::f32;
  scan.reverse = reverse != (step < 0);
  const int scanned = exprs_.push(std::move(scan));
  return integers ? exprs_.wrap(scanned, dtype) : scanned;
}

GraphReader::MaybeValue GraphReader::read_window(const Node& node, const Coordinates& at) {
  const ValueOp op = operation_of(node.op);
  Coordinates taps;
  const auto from = source_of(
      node, 0, at, [&](size_t, int64_t size) { return taps.emplace_back(new_axis(size)); });
  if (!from) return std::nullopt;
  const MaybeValue operand = read_padded(node.inputs[0], *from, identity_of(op));
  if (!operand) return std::nullopt;
  return exprs_.reduce_as(result_type(node), op, *operand, stepped_axes(taps));
}

GraphReader::MaybeValue GraphReader::read_convolution(const Node& node, const Coordinates& at) {
  constexpr size_t kChannels = 1;  // the dimension of them, in the input and in the filter
  const Shape& filter = input(node, 1).shape;
  const int64_t groups = node.integer("group", 1);
  const auto group_and_filter = axes_.digits(at[kChannels], {groups, filter[0] / groups});
  Coordinates weight(filter.size());
  weight[0] = at[kChannels];
  weight[kChannels] = new_axis(filter[kChannels]);
  auto from = source_of(node, 0, at, [&](size_t d, int64_t size) {
    if (d == kChannels) return Affine{};  // those of the group, below
    weight[d] = new_axis(size);
    return weight[d];
  });
  if (!group_and_filter || !from || node.inputs.size() > 2) return std::nullopt;
  (*from)[kChannels] = weight[kChannels];
  add((*from)[kChannels], (*group_and_filter)[0], filter[kChannels]);
  const MaybeValue x = read_padded(node.inputs[0], *from, 0);
  const MaybeValue w = x ? read(node.inputs[1], weight) : std::nullopt;
  if (!w) return std::nullopt;
  const auto summed = stepped_axes(std::span(weight).subspan(kChannels));
  const Dtype dtype = result_type(node);
  const int terms = exprs_.apply_as(dtype, ValueOp::mul, {*x, *w});
  return exprs_.reduce_as(dtype, ValueOp::add, terms, summed);
}

GraphReader::MaybeValue GraphReader::read_contraction(const Node& node, const Coordinates& at) {
  std::optional<Affine> k;
  const auto along_k = [&](size_t, int64_t size) {
    if (!k) k = new_axis(size);
    return *k;
  };
  std::vector<int> factors;
  for (size_t i = 0; i < 2; ++i) {
    const auto from = source_of(node, i, at, along_k);
    const MaybeValue factor = from ? read(node.inputs[i], *from) : std::nullopt;
    if (!factor) return std::nullopt;
    factors.push_back(*factor);
  }
  const Dtype dtype = result_type(node);
  const int terms = exprs_.apply_as(dtype, ValueOp::mul, factors);
  const std::vector<size_t> summed = k ? stepped_axes(*k) : std::vector<size_t>{};
  return exprs_.reduce_as(dtype, ValueOp::add, terms, summed);
}
}  // namespace warploom::loopnest
