// Views and movements: operators that compute nothing, but say where elements come from.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/value_op.h"
#include "graph/graph.h"
#include "graph/operators.h"
#include "loopnest/affine.h"
#include "loopnest/graph_reader.h"
#include "loopnest/loop_nest.h"

namespace warploom::loopnest {
using graph::Node, graph::OpKind, graph::Shape, graph::TensorId;

namespace {
// Dimensions [from, from_end) of a shape that hold the same elements as [to, to_end) of another
// one.
struct DimGroup {
  size_t from;
  size_t from_end;
  size_t to;
  size_t to_end;
  int64_t elements;

  bool is_one_dimension() const { return from_end == from + 1 && to_end == to + 1; }
};

// Matches the dimensions of two shapes of as many elements in the smallest groups of equal product.
std::vector<DimGroup> matched_groups(const Shape& from, const Shape& to) {
  std::vector<DimGroup> groups;
  size_t i = 0;
  size_t o = 0;
  while (i < from.size() || o < to.size()) {
    DimGroup group{i, i, o, o, 1};
    int64_t have = 1;
    int64_t want = 1;
    if (i < from.size()) have = from[i++];
    if (o < to.size()) want = to[o++];
    while (have != want) {
      if (have < want)
        have *= from[i++];
      else
        want *= to[o++];
    }
    group.from_end = i;
    group.to_end = o;
    group.elements = have;
    groups.push_back(group);
  }
  return groups;
}
}  // namespace

GraphReader::MaybeValue GraphReader::read_view(const Node& node, const Coordinates& at) {
  const TensorId id = node.inputs[0];
  const Shape& from = tensor(id).shape;
  const Shape& to = tensor(node.outputs[0]).shape;
  Coordinates out(from.size());
  for (const DimGroup& group : matched_groups(from, to)) {
    if (group.is_one_dimension()) {
      out[group.from] = at[group.to];
      continue;
    }
    if (group.elements == 1) continue;
    Affine flat;
    for (size_t d = group.to; d < group.to_end; ++d) {
      if (!axes_.lies_in(at[d], 0, to[d])) return std::nullopt;
      Affine scaled;
      add(scaled, flat, to[d]);
      add(scaled, at[d]);
      flat = scaled;
    }
    const auto first = from.begin() + as_int64(group.from);
    const auto last = from.begin() + as_int64(group.from_end);
    const auto digits = axes_.digits(flat, Shape(first, last));
    // Where it cuts axes unevenly, a stored tensor is the same memory under another shape.
    if (!digits && !split_requested() && is_stored(id)) return load_reshaped(id, at, to);
    if (!digits) return std::nullopt;
    std::ranges::copy(*digits, out.begin() + as_int64(group.from));
  }
  return read(id, out);
}

int GraphReader::load_reshaped(TensorId id, const Coordinates& at, const Shape& shape) {
  Access load = access(id, Coordinates(tensor(id).shape.size()));
  load.shape = shape;
  load.strides = graph::strides_of(shape);
  load.at = at;
  load.in_bounds = axes_.in_bounds(at, shape);
  return exprs_.load(std::move(load));
}

GraphReader::MaybeValue GraphReader::read_movement(const Node& node, const Coordinates& at) {
  if (node.op == OpKind::Concat) return read_concat(node, at);
  if (node.op == OpKind::Gather) return read_gather(node, at);
  if (node.op == OpKind::Pad) return read_pad(node, at);
  const auto from = source_of(node, 0, at);
  return from ? read(node.inputs[0], *from) : std::nullopt;
}

GraphReader::MaybeValue GraphReader::read_pad(const Node& node, const Coordinates& at) {
  constexpr double kExactInDouble = 0x1p53;
  const auto from = source_of(node, 0, at);
  if (!from) return std::nullopt;
  const bool given = node.inputs.size() > 2 && node.inputs[2] != graph::kAbsent;
  const auto fill = given ? constant_scalar(graph_, node.inputs[2]) : 0.0;
  if (!fill) return std::nullopt;
  const Dtype dtype = input(node, 0).dtype;
  const Shape& shape = input(node, 0).shape;
  const bool exact = dtype != Dtype::i64 || std::abs(*fill) < kExactInDouble;
  if (exact || axes_.in_bounds(*from, shape)) return read_padded(node.inputs[0], *from, *fill);
  // A fill that no double holds is loaded.
  const MaybeValue value = read(node.inputs[0], *from);
  const Coordinates first(input(node, 2).shape.size());
  const MaybeValue outside = read(node.inputs[2], first);
  if (!value || !outside) return std::nullopt;
  return where_inside(*value, *from, shape, *outside, dtype);
}

// The sum of the pieces that may be meant, each 0 outside itself.
GraphReader::MaybeValue GraphReader::read_concat(const Node& node, const Coordinates& at) {
  const auto rule = graph::operator_of(node.op).rule({graph_, node});
  if (!rule) return std::nullopt;
  MaybeValue sum;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const auto from = read_by(*rule->reads[i], input(node, i).shape, at);
    if (!from) return std::nullopt;
    if (lies_apart(node.inputs[i], *from)) continue;
    const MaybeValue piece = read_padded(node.inputs[i], *from, 0);
    if (!piece) return std::nullopt;
    if (sum)
      sum = exprs_.apply_as(result_type(node), ValueOp::add, {*sum, *piece});
    else
      sum = piece;
  }
  return sum;
}

// Whether coordinates never meet an element of a tensor.
bool GraphReader::lies_apart(TensorId id, const Coordinates& at) const {
  const Shape& shape = tensor(id).shape;
  if (graph::element_count(shape) == 0) return true;
  for (size_t d = 0; d < at.size(); ++d) {
    const auto [low, high] = nest_.range(at[d]);
    if (high < 0 || low >= shape[d]) return true;
  }
  return false;
}

// Of a tensor that is stored, by indices that are.
GraphReader::MaybeValue GraphReader::read_gather(const Node& node, const Coordinates& at) {
  const TensorId data = node.inputs[0];
  const auto& indices = input(node, 1);
  const graph::NodeContext context{graph_, node};
  const size_t rank = input(node, 0).shape.size();
  const size_t axis = context.axis(rank);
  const auto place = source_of(node, 1, at);
  if (!is_stored(data) || !is_stored(node.inputs[1]) || !place ||
      !axes_.in_bounds(*place, indices.shape))
    return std::nullopt;
  Access load = access(data, Coordinates(rank));
  const size_t added = indices.shape.size() - 1;  // dimensions of the result behind the axis
  for (size_t d = 0; d < rank; ++d) {
    const size_t in_result = d < axis ? d : d + added;
    if (d != axis) load.at[d] = at[in_result];
  }
  const Shape steps = graph::strides_of(indices.shape);
  for (size_t d = 0; d < steps.size(); ++d)
    add(load.at[axis], (*place)[d], steps[d]);
  load.gather_indices = {indices.name, indices.dtype, {graph::element_count(indices.shape)}};
  load.gather_dim = as_int(axis);
  load.in_bounds = false;
  return exprs_.load(std::move(load));
}
}  // namespace warploom::loopnest
