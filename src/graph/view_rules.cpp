// Rules of the operators that keep, move or leave out elements: their shapes follow from constants.
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "graph/graph.h"
#include "graph/operators.h"
#include "graph/rules.h"

namespace warploom::graph {
namespace {
// What list() calls an input in its errors.
constexpr std::string_view kNewShape = "the new shape";
constexpr std::string_view kAxes = "the list of axes";
constexpr std::string_view kStarts = "the list of starts";
constexpr std::string_view kEnds = "the list of ends";
constexpr std::string_view kSteps = "the list of steps";
constexpr std::string_view kPads = "the list of pads";
}  // namespace

Result<List> list(const NodeContext& context, size_t i, std::string_view what, size_t most) {
  const Tensor& tensor = context.in(i);
  if (tensor.dtype != Dtype::i64 && tensor.dtype != Dtype::i32) {
    const std::string message = fmt::format("{} is no list of integers", what);
    return context.error(kType, message, "i64", tensor.dtype);
  }
  auto values = constant_integers(context.graph, context.node.inputs[i]);
  if (!values) {
    const std::string message = fmt::format("{} is not known from the model", what);
    const std::string expected = "a constant, or something computed from constants and shapes";
    return context.error(ErrorCode::kOnnxDynamicShape, message, expected, tensor.name,
                         "export the model with fixed shapes");
  }
  if (tensor.shape.size() > 1 || values->size() > most) {
    const std::string expected = fmt::format("one axis of at most {} entries", most);
    return context.error(kShape, fmt::format("{} is no list", what), expected, tensor.shape);
  }
  return *values;
}

Result<List> axes(const NodeContext& context, const List& wanted, size_t rank) {
  List found = wanted;
  for (int64_t& axis : found) {
    WARPLOOM_TRY(axis, normalized_axis(axis, rank, context.place));
  }
  std::ranges::sort(found);
  if (std::ranges::adjacent_find(found) != found.end())
    return context.error(kAttribute, "an axis is named twice", "distinct axes", wanted);
  return found;
}

namespace {
// The axes that a Slice or Pad is about, in its order: the first `count` unless it names them.
Result<List> named_axes(const NodeContext& context, size_t count) {
  List named = span(0, count);
  if (context.has(3)) {
    WARPLOOM_TRY(named, list(context, 3, kAxes));
  }
  const size_t rank = context.in(0).shape.size();
  WARPLOOM_CHECK(axes(context, named, rank));
  for (int64_t& axis : named)
    axis += axis < 0 ? as_int64(rank) : 0;
  return named;
}
}  // namespace

AxisSources same_axes(size_t rank) {
  AxisSources sources(rank);
  for (size_t i = 0; i < rank; ++i)
    sources[i].axis = as_int(i);
  return sources;
}

Status check_indices(const NodeContext& context) {
  if (context.in(1).dtype == Dtype::i64 || context.in(1).dtype == Dtype::i32) return ok();
  return context.error(kType, "indices are no integers", "i64 or i32", context.in(1).dtype);
}

namespace rules {
Result<InferredOutput> reshape(const NodeContext& context) {
  WARPLOOM_TRY(Shape shape, list(context, 1, kNewShape));
  const Shape& from = context.in(0).shape;
  int inferred = -1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && context.node.integer("allowzero") == 0) {
      if (i >= from.size())
        return context.error(kShape, "a 0 copies an axis that is not there", from, shape);
      shape[i] = from[i];
    } else if (shape[i] == -1 && inferred < 0) {
      inferred = as_int(i);
    } else if (shape[i] < 0) {
      return context.error(kShape, "a new size is negative",
                           "sizes of 0 or more and at most one -1", shape);
    }
  }
  Shape known = shape;
  if (inferred >= 0) known[inferred] = 1;
  WARPLOOM_TRY(int64_t count, checked_element_count(known, context.place));
  const int64_t total = element_count(from);
  if (inferred >= 0) {
    if (count == 0 || total % count != 0) {
      const std::string expected = fmt::format("{} elements", total);
      return context.error(kShape, "no size fits in the place of -1", expected, shape);
    }
    shape[inferred] = total / count;
    count = total;
  }
  if (count != total) {
    const std::string expected = fmt::format("{} elements", total);
    return context.error(kShape, "the new shape has another number of elements", expected, shape);
  }
  return InferredOutput{context.in(0).dtype, shape};
}

Result<InferredOutput> unsqueeze(const NodeContext& context) {
  Shape shape = context.in(0).shape;
  WARPLOOM_TRY(const List wanted, list(context, 1, kAxes));
  const size_t rank = shape.size() + wanted.size();
  WARPLOOM_TRY(const List where, axes(context, wanted, rank));
  for (const int64_t axis : where)
    shape.insert(shape.begin() + axis, 1);
  return InferredOutput{context.in(0).dtype, shape};
}

Result<InferredOutput> squeeze(const NodeContext& context) {
  Shape shape = context.in(0).shape;
  if (!context.has(1)) {
    std::erase(shape, 1);
    return InferredOutput{context.in(0).dtype, shape};
  }
  WARPLOOM_TRY(const List wanted, list(context, 1, kAxes));
  WARPLOOM_TRY(const List where, axes(context, wanted, shape.size()));
  for (auto axis = where.rbegin(); axis != where.rend(); ++axis) {
    if (shape[*axis] != 1)
      return context.error(kShape, "an axis to squeeze out is larger than 1", "size 1",
                           context.in(0).shape);
    shape.erase(shape.begin() + *axis);
  }
  return InferredOutput{context.in(0).dtype, shape};
}

Result<InferredOutput> flatten(const NodeContext& context) {
  const Shape& from = context.in(0).shape;
  const int64_t rank = std::ssize(from);
  const int64_t given = context.node.integer("axis");
  const int64_t axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis > rank) {
    const std::string expected = fmt::format("{} to {}", -rank, rank);
    return context.error(kAttribute, "an axis is outside the tensor's rank", expected, given);
  }
  const int64_t rows = element_count(entries(from, 0, axis));
  const int64_t columns = element_count(entries(from, axis));
  return InferredOutput{context.in(0).dtype, {rows, columns}};
}

Result<InferredOutput> transpose(const NodeContext& context) {
  const Shape& from = context.in(0).shape;
  const List all = span(0, from.size());
  List perm(all.rbegin(), all.rend());
  if (context.node.attributes.contains("perm")) perm = context.node.integers("perm");
  if (!std::ranges::is_permutation(perm, all)) {
    const std::string expected = fmt::format("each of 0 to {} once", std::ssize(from) - 1);
    return context.error(kAttribute, "perm is no permutation of the axes", expected, perm);
  }
  Shape shape;
  AxisSources sources(perm.size());
  for (const int64_t axis : perm) {
    sources[axis].axis = as_int(shape.size());
    shape.push_back(from[axis]);
  }
  return InferredOutput{context.in(0).dtype, shape, {sources}};
}

Result<InferredOutput> expand(const NodeContext& context) {
  WARPLOOM_TRY(Shape wanted, list(context, 1, kNewShape));
  for (int64_t size : wanted)
    if (size < 0)
      return context.error(kShape, "a new size is negative", "sizes of 0 or more", wanted);
  const Shape& from = context.in(0).shape;
  WARPLOOM_TRY(Shape shape, broadcast(from, wanted, context.place));
  const AxisSources sources = aligned(from, shape.size());
  return InferredOutput{context.in(0).dtype, shape, {sources}};
}

Result<InferredOutput> concat(const NodeContext& context) {
  if (!context.node.attributes.contains("axis"))
    return context.error(kAttribute, "Concat lacks its axis", "attribute axis");
  WARPLOOM_TRY(const size_t at, checked_axis(context));
  InferredOutput output{context.in(0).dtype, context.in(0).shape};
  output.shape[at] = 0;
  for (size_t i = 0; i < context.node.inputs.size(); ++i) {
    Shape other = context.in(i).shape;
    if (context.in(i).dtype != output.dtype)
      return context.error(kType, "Concat of different types", output.dtype, context.in(i).dtype);
    const int64_t begin = output.shape[at];
    int64_t added = 0;
    if (at < other.size()) added = std::exchange(other[at], begin);
    if (other != output.shape) {
      const Shape& first = context.in(0).shape;
      const Shape& found = context.in(i).shape;
      return context.error(kShape, "Concat of shapes that differ off its axis", first, found);
    }
    output.shape[at] += added;
    WARPLOOM_CHECK(checked_element_count(output.shape, context.place));
    output.reads.emplace_back(same_axes(output.shape.size()));
    (*output.reads.back())[at].begin = -begin;
  }
  return output;
}

Result<InferredOutput> gather(const NodeContext& context) {
  const Shape& from = context.in(0).shape;
  const Shape& indices = context.in(1).shape;
  WARPLOOM_CHECK(check_indices(context));
  WARPLOOM_TRY(const size_t axis, checked_axis(context));
  const int64_t size = from[axis];
  const auto known = constant_integers(context.graph, context.node.inputs[1]);
  for (const int64_t index : known.value_or(List{})) {
    if (index >= -size && index < size) continue;
    const std::string expected = fmt::format("{} to {}", -size, size - 1);
    return context.error(kShape, "an index is outside the axis", expected, index);
  }
  const Shape before = chained(entries(from, 0, axis), indices);
  const Shape shape = chained(before, entries(from, axis + 1));
  AxisSources data = same_axes(from.size());
  AxisSources places = same_axes(indices.size());
  data[axis] = {};
  for (size_t i = axis + 1; i < data.size(); ++i)
    data[i].axis += as_int(indices.size()) - 1;
  for (AxisSource& place : places)
    place.axis += as_int(axis);
  return InferredOutput{context.in(0).dtype, shape, {data, places}};
}

namespace {
// What a Slice takes, entry by entry of its lists.
struct SliceLists {
  List starts;
  List ends;
  List axes;
  List steps;
};

Result<SliceLists> slice_lists(const NodeContext& context) {
  SliceLists lists;
  WARPLOOM_TRY(lists.starts, list(context, 1, kStarts));
  const size_t count = lists.starts.size();
  WARPLOOM_TRY(lists.ends, list(context, 2, kEnds));
  WARPLOOM_TRY(lists.axes, named_axes(context, count));
  lists.steps.assign(count, 1);
  if (context.has(4)) {
    WARPLOOM_TRY(lists.steps, list(context, 4, kSteps));
  }
  const size_t ends = lists.ends.size();
  const size_t axes = lists.axes.size();
  const size_t steps = lists.steps.size();
  if (ends == count && axes == count && steps == count) return lists;
  const std::string expected = fmt::format("{} entries each", count);
  const std::string found = fmt::format("{} ends, {} axes, {} steps", ends, axes, steps);
  return context.error(kShape, "the lists of a Slice differ in length", expected, found);
}

// A slice of an axis of `size` elements: its first element, its step and how many it takes.
struct SlicedAxis {
  int64_t begin;
  int64_t step;
  int64_t count;
};

// `step` is not 0, `size` neither.
SlicedAxis sliced_axis(int64_t start, int64_t end, int64_t step, int64_t size) {
  // Beyond the axis in steps is the same as just one step beyond it; clamping keeps the arithmetic
  // small.
  step = std::clamp(step, -(size + 1), size + 1);
  const auto clamped = [&](int64_t value, int64_t low, int64_t high) {
    const int64_t place = value < 0 ? std::max(value, -2 * size - 2) + size : value;
    return std::clamp(place, low, high);
  };
  const bool up = step > 0;
  const int64_t high = up ? size : size - 1;
  const int64_t begin = clamped(start, 0, high);
  const int64_t distance = clamped(end, up ? 0 : -1, high) - begin;
  const int64_t count = (distance + step + (up ? -1 : 1)) / step;
  return {begin, step, std::max<int64_t>(count, 0)};
}
}  // namespace

Result<InferredOutput> slice(const NodeContext& context) {
  const Shape& from = context.in(0).shape;
  WARPLOOM_TRY(const SliceLists lists, slice_lists(context));
  Shape shape = from;
  AxisSources sources = same_axes(from.size());
  for (size_t i = 0; i < lists.starts.size(); ++i) {
    const auto at = as_size(lists.axes[i]);
    const int64_t size = from[at];
    if (lists.steps[i] == 0)
      return context.error(kShape, "a step of a Slice is 0", "any other step", "0");
    if (size == 0) continue;  // nothing to take, wherever the slice points
    const int64_t start = lists.starts[i];
    const int64_t end = lists.ends[i];
    const SlicedAxis axis = sliced_axis(start, end, lists.steps[i], size);
    shape[at] = axis.count;
    sources[at].begin = axis.begin;
    sources[at].step = axis.step;
  }
  return InferredOutput{context.in(0).dtype, shape, {sources}};
}

Result<InferredOutput> pad(const NodeContext& context) {
  const std::string mode = context.node.attribute<std::string>("mode", "constant");
  const Dtype dtype = context.in(0).dtype;
  if (context.has(2)) {
    const Tensor& value = context.in(2);
    if (value.dtype != dtype || element_count(value.shape) != 1)
      return type_error(context, fmt::format("one value of {}", name_of(dtype)), value);
  }
  Shape shape = context.in(0).shape;
  constexpr size_t kMostPads = 2 * kMaxRank;
  WARPLOOM_TRY(const List pads, list(context, 1, kPads, kMostPads));
  const size_t rank = shape.size();
  WARPLOOM_TRY(const List where, named_axes(context, rank));
  if (pads.size() != 2 * where.size()) {
    const std::string expected = fmt::format("{} entries", 2 * where.size());
    return context.error(kShape, "the pads do not fit the axes", expected, pads);
  }
  AxisSources sources = same_axes(shape.size());
  for (size_t i = 0; i < where.size(); ++i) {
    const auto axis = as_size(where[i]);
    const int64_t before = std::clamp(pads[i], -kMaxElements, kMaxElements);
    const int64_t after = std::clamp(pads[where.size() + i], -kMaxElements, kMaxElements);
    sources[axis].begin = -before;
    shape[axis] += before + after;
    if (shape[axis] < 0)
      return context.error(kShape, "a Pad crops more than there is", "sizes of 0 or more", shape);
    if (mode != "constant" && context.in(0).shape[axis] == 0 && shape[axis] > 0)
      return context.error(kShape, "a Pad repeats what is not there", "an axis of 1 or more",
                           context.in(0).shape);
  }
  InferredOutput output{context.in(0).dtype, shape, {sources, std::nullopt}};
  if (context.has(2)) output.reads.emplace_back(AxisSources(context.in(2).shape.size()));
  return output;
}
}  // namespace rules
}  // namespace warploom::graph
