// Operators that only move elements: places, and copies into parts.
#include <cstddef>
#include <cstdint>
#include <utility>
#include "base/dtype.h"
#include "graph/graph.h"
#include "graph/operators.h"
#include "vendor/matcher.h"
#include "vendor/places.h"
#include "vendor/problem.h"

namespace warploom::vendor {
using graph::AxisSource;
using graph::kAbsent;
using graph::NodeContext;

bool Matcher::alias(const Node& node) {
  const TensorId from = node.inputs[0];
  const TensorId to = node.outputs[0];
  for (size_t i = 1; i < node.outputs.size(); ++i)
    if (node.outputs[i] != kAbsent && !consumers_[node.outputs[i]].empty()) return false;
  auto seen = reshaped(place(from), tensor(to).shape);
  if (!seen) {
    copy_to_own_place(from);
    seen = reshaped(place(from), tensor(to).shape);
  }
  if (!seen) return false;
  places_[to] = *std::move(seen);
  return true;
}

bool Matcher::movement(const Node& node) {
  const auto rule = axis_sources(graph(), node, 0);
  const TensorId to = node.outputs[0];
  if (!rule) return false;
  const Place& from = place(node.inputs[0]);
  const Shape& shape = tensor(to).shape;
  const Shape no_strides(shape.size());
  Place out{from.buffer, from.dtype, shape, no_strides, from.offset};
  for (size_t d = 0; d < rule->size(); ++d) {
    const AxisSource& source = (*rule)[d];
    if (source.taps != 1) return false;
    if (source.axis == AxisSource::kWhole) {
      if (from.shape[d] != 1) return false;
      continue;
    }
    out.offset += source.begin * from.strides[d];
    out.strides[source.axis] += source.step * from.strides[d];
  }
  // What runs backwards, or stretches, no library sees in place.
  for (size_t d = 0; d < shape.size(); ++d)
    if (out.strides[d] < 0 || (shape[d] > 1 && out.strides[d] == 0)) return false;
  places_[to] = std::move(out);
  return true;
}

bool Matcher::split(const Node& node) {
  const Place from = place(node.inputs[0]);
  const NodeContext context{graph(), node};
  const size_t axis = context.axis(from.shape.size());
  int64_t begin = 0;
  for (const TensorId id : node.outputs) {
    if (id == kAbsent) return false;
    Place part = from;
    part.shape = tensor(id).shape;
    part.offset += begin * from.strides[axis];
    begin += part.shape[axis];
    places_[id] = std::move(part);
  }
  return begin == from.shape[axis];
}

bool Matcher::concat(const Node& node) {
  const TensorId to = node.outputs[0];
  const NodeContext context{graph(), node};
  const size_t axis = context.axis(tensor(to).shape.size());
  Place part = own_place(to);
  for (const TensorId id : node.inputs) {
    Place from = place(id);
    part.shape = tensor(id).shape;
    const int64_t length = part.shape[axis] * part.strides[axis];
    if (elements_of(from) > 0) push_alone(Copy{std::move(from), part}, to);
    part.offset += length;
  }
  parts_.insert(tensor(to).name);
  places_[to] = own_place(to);
  return true;
}

bool Matcher::cast(const Node& node) {
  const TensorId from = node.inputs[0];
  const TensorId to = node.outputs[0];
  if (tensor(from).dtype == tensor(to).dtype) return alias(node);
  if (!is_float(tensor(from).dtype) || !is_float(tensor(to).dtype)) return false;
  push_alone(Copy{place(from), own_place(to)}, to);
  return true;
}
}  // namespace warploom::vendor
