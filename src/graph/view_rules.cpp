// Rules of the operators that keep, move or leave out elements: their shapes follow from constants.
#include "graph/rules.h"

namespace warploom::graph {
Result<List> list(const NodeContext& q, size_t i, std::string_view what, size_t most) {
  const Tensor& tensor = q.in(i);
  if (tensor.dtype != Dtype::i64 && tensor.dtype != Dtype::i32)
    return q.error(kType, fmt::format("{} is no list of integers", what), "i64", tensor.dtype);
  auto values = constant_integers(q.graph, q.node.inputs[i]);
  if (!values)
    return q.error(ErrorCode::kOnnxDynamicShape,
                   fmt::format("{} is not known from the model", what),
                   "a constant, or something computed from constants and shapes", tensor.name,
                   "export the model with fixed shapes");
  if (tensor.shape.size() > 1 || values->size() > most)
    return q.error(kShape, fmt::format("{} is no list", what),
                   fmt::format("one axis of at most {} entries", most), tensor.shape);
  return *values;
}

Result<List> axes(const NodeContext& q, const List& wanted, size_t rank) {
  List found = wanted;
  for (int64_t& axis : found) {
    WARPLOOM_TRY(axis, normalized_axis(axis, rank, q.place));
  }
  std::ranges::sort(found);
  if (std::ranges::adjacent_find(found) != found.end())
    return q.error(kAttribute, "an axis is named twice", "distinct axes", wanted);
  return found;
}

namespace {
// The axes that a Slice or Pad is about, in its order: the first `count` unless it names them.
Result<List> named_axes(const NodeContext& q, size_t count) {
  List named = span(0, count);
  if (q.has(3)) {
    WARPLOOM_TRY(named, list(q, 3, "the list of axes"));
  }
  const size_t rank = q.in(0).shape.size();
  WARPLOOM_CHECK(axes(q, named, rank));
  for (int64_t& axis : named) axis += axis < 0 ? static_cast<int64_t>(rank) : 0;
  return named;
}
}  // namespace

Access same_axes(size_t rank) {
  Access access(rank);
  for (size_t i = 0; i < rank; ++i) access[i].axis = static_cast<int>(i);
  return access;
}

Status check_indices(const NodeContext& q) {
  if (q.in(1).dtype == Dtype::i64 || q.in(1).dtype == Dtype::i32) return ok();
  return q.error(kType, "indices are no integers", "i64 or i32", q.in(1).dtype);
}

namespace rules {
Result<Answer> reshape(const NodeContext& q) {
  WARPLOOM_TRY(Shape shape, list(q, 1, "the new shape"));
  const Shape& from = q.in(0).shape;
  int inferred = -1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && q.node.integer("allowzero") == 0) {
      if (i >= from.size())
        return q.error(kShape, "a 0 copies an axis that is not there", from, shape);
      shape[i] = from[i];
    } else if (shape[i] == -1 && inferred < 0) {
      inferred = static_cast<int>(i);
    } else if (shape[i] < 0) {
      return q.error(kShape, "a new size is negative", "sizes of 0 or more and at most one -1",
                     shape);
    }
  }
  Shape known = shape;
  if (inferred >= 0) known[inferred] = 1;
  WARPLOOM_TRY(int64_t count, checked_element_count(known, q.place));
  const int64_t total = element_count(from);
  if (inferred >= 0) {
    if (count == 0 || total % count != 0)
      return q.error(kShape, "no size fits in the place of -1", fmt::format("{} elements", total),
                     shape);
    shape[inferred] = total / count;
    count = total;
  }
  if (count != total)
    return q.error(kShape, "the new shape has another number of elements",
                   fmt::format("{} elements", total), shape);
  return Answer{q.in(0).dtype, shape};
}

Result<Answer> unsqueeze(const NodeContext& q) {
  Shape shape = q.in(0).shape;
  WARPLOOM_TRY(const List wanted, list(q, 1, "the list of axes"));
  WARPLOOM_TRY(const List where, axes(q, wanted, shape.size() + wanted.size()));
  for (const int64_t axis : where) shape.insert(shape.begin() + axis, 1);
  return Answer{q.in(0).dtype, shape};
}

Result<Answer> squeeze(const NodeContext& q) {
  Shape shape = q.in(0).shape;
  if (!q.has(1)) {
    std::erase(shape, 1);
    return Answer{q.in(0).dtype, shape};
  }
  WARPLOOM_TRY(const List wanted, list(q, 1, "the list of axes"));
  WARPLOOM_TRY(const List where, axes(q, wanted, shape.size()));
  for (auto axis = where.rbegin(); axis != where.rend(); ++axis) {
    if (shape[*axis] != 1)
      return q.error(kShape, "an axis to squeeze out is larger than 1", "size 1", q.in(0).shape);
    shape.erase(shape.begin() + *axis);
  }
  return Answer{q.in(0).dtype, shape};
}

Result<Answer> flatten(const NodeContext& q) {
  const Shape& from = q.in(0).shape;
  const int64_t rank = std::ssize(from), given = q.node.integer("axis"),
                axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis > rank)
    return q.error(kAttribute, "an axis is outside the tensor's rank",
                   fmt::format("{} to {}", -rank, rank), given);
  return Answer{q.in(0).dtype,
                {element_count(entries(from, 0, axis)), element_count(entries(from, axis))}};
}

Result<Answer> transpose(const NodeContext& q) {
  const Shape& from = q.in(0).shape;
  const List all = span(0, from.size());
  const List perm =
      q.node.attributes.contains("perm") ? q.node.integers("perm") : List(all.rbegin(), all.rend());
  if (!std::ranges::is_permutation(perm, all))
    return q.error(kAttribute, "perm is no permutation of the axes",
                   fmt::format("each of 0 to {} once", static_cast<int64_t>(from.size()) - 1),
                   perm);
  Shape shape;
  Access access(perm.size());
  for (const int64_t axis : perm) {
    access[axis].axis = static_cast<int>(shape.size());
    shape.push_back(from[axis]);
  }
  return Answer{q.in(0).dtype, shape, {access}};
}

Result<Answer> expand(const NodeContext& q) {
  WARPLOOM_TRY(Shape wanted, list(q, 1, "the new shape"));
  for (int64_t size : wanted)
    if (size < 0) return q.error(kShape, "a new size is negative", "sizes of 0 or more", wanted);
  WARPLOOM_TRY(Shape shape, broadcast(q.in(0).shape, wanted, q.place));
  return Answer{q.in(0).dtype, shape, {aligned(q.in(0).shape, shape.size())}};
}

Result<Answer> concat(const NodeContext& q) {
  if (!q.node.attributes.contains("axis"))
    return q.error(kAttribute, "Concat lacks its axis", "attribute axis");
  WARPLOOM_TRY(const size_t at, checked_axis(q));
  Answer answer{q.in(0).dtype, q.in(0).shape};
  answer.shape[at] = 0;
  for (size_t i = 0; i < q.node.inputs.size(); ++i) {
    Shape other = q.in(i).shape;
    if (q.in(i).dtype != answer.dtype)
      return q.error(kType, "Concat of different types", answer.dtype, q.in(i).dtype);
    const int64_t begin = answer.shape[at];
    const int64_t added = at < other.size() ? std::exchange(other[at], begin) : 0;
    if (other != answer.shape)
      return q.error(kShape, "Concat of shapes that differ off its axis", q.in(0).shape,
                     q.in(i).shape);
    answer.shape[at] += added;
    WARPLOOM_CHECK(checked_element_count(answer.shape, q.place));
    answer.reads.emplace_back(same_axes(answer.shape.size()));
    (*answer.reads.back())[at].begin = -begin;
  }
  return answer;
}

Result<Answer> gather(const NodeContext& q) {
  const Shape& from = q.in(0).shape;
  const Shape& indices = q.in(1).shape;
  WARPLOOM_CHECK(check_indices(q));
  WARPLOOM_TRY(const size_t axis, checked_axis(q));
  const int64_t size = from[axis];
  for (const int64_t index : constant_integers(q.graph, q.node.inputs[1]).value_or(List{}))
    if (index < -size || index >= size)
      return q.error(kShape, "an index is outside the axis",
                     fmt::format("{} to {}", -size, size - 1), index);
  const Shape shape = chained(chained(entries(from, 0, axis), indices), entries(from, axis + 1));
  Access data = same_axes(from.size());
  Access places = same_axes(indices.size());
  data[axis] = {};
  for (size_t i = axis + 1; i < data.size(); ++i)
    data[i].axis += static_cast<int>(indices.size()) - 1;
  for (AxisSource& place : places) place.axis += static_cast<int>(axis);
  return Answer{q.in(0).dtype, shape, {data, places}};
}

Result<Answer> slice(const NodeContext& q) {
  const Shape& from = q.in(0).shape;
  WARPLOOM_TRY(const List starts, list(q, 1, "the list of starts"));
  WARPLOOM_TRY(const List ends, list(q, 2, "the list of ends"));
  WARPLOOM_TRY(const List where, named_axes(q, starts.size()));
  List steps(starts.size(), 1);
  if (q.has(4)) {
    WARPLOOM_TRY(steps, list(q, 4, "the list of steps"));
  }
  if (ends.size() != starts.size() || where.size() != starts.size() ||
      steps.size() != starts.size())
    return q.error(
        kShape, "the lists of a Slice differ in length",
        fmt::format("{} entries each", starts.size()),
        fmt::format("{} ends, {} axes, {} steps", ends.size(), where.size(), steps.size()));
  Shape shape = from;
  Access access = same_axes(from.size());
  for (size_t i = 0; i < starts.size(); ++i) {
    const auto at = static_cast<size_t>(where[i]);
    const int64_t size = from[at];
    // Beyond the axis in steps is the same as just one step beyond it; clamping keeps the
    // arithmetic small.
    const int64_t step = std::clamp(steps[i], -(size + 1), size + 1);
    if (steps[i] == 0) return q.error(kShape, "a step of a Slice is 0", "any other step", "0");
    if (size == 0) continue;  // nothing to take, wherever the slice points
    const auto clamped = [&](int64_t value, int64_t low, int64_t high) {
      return std::clamp(value < 0 ? std::max(value, -2 * size - 2) + size : value, low, high);
    };
    const bool up = step > 0;
    const int64_t begin = clamped(starts[i], 0, up ? size : size - 1);
    const int64_t distance = clamped(ends[i], up ? 0 : -1, up ? size : size - 1) - begin;
    shape[at] = std::max<int64_t>((distance + step + (up ? -1 : 1)) / step, 0);
    access[at].begin = begin;
    access[at].step = step;
  }
  return Answer{q.in(0).dtype, shape, {access}};
}

Result<Answer> pad(const NodeContext& q) {
  const std::string mode = q.node.attribute<std::string>("mode", "constant");
  if (q.has(2) && (q.in(2).dtype != q.in(0).dtype || element_count(q.in(2).shape) != 1))
    return type_error(q, fmt::format("one value of {}", name_of(q.in(0).dtype)), q.in(2));
  Shape shape = q.in(0).shape;
  WARPLOOM_TRY(const List pads, list(q, 1, "the list of pads", 2 * kMaxRank));
  WARPLOOM_TRY(const List where, named_axes(q, shape.size()));
  if (pads.size() != 2 * where.size())
    return q.error(kShape, "the pads do not fit the axes",
                   fmt::format("{} entries", 2 * where.size()), pads);
  Access access = same_axes(shape.size());
  for (size_t i = 0; i < where.size(); ++i) {
    const auto axis = static_cast<size_t>(where[i]);
    access[axis].begin = -std::clamp(pads[i], -kMaxElements, kMaxElements);
    shape[axis] +=
        std::clamp(pads[where.size() + i], -kMaxElements, kMaxElements) - access[axis].begin;
    if (shape[axis] < 0)
      return q.error(kShape, "a Pad crops more than there is", "sizes of 0 or more", shape);
    if (mode != "constant" && q.in(0).shape[axis] == 0 && shape[axis] > 0)
      return q.error(kShape, "a Pad repeats what is not there", "an axis of 1 or more",
                     q.in(0).shape);
  }
  Answer answer{q.in(0).dtype, shape, {access, std::nullopt}};
  if (q.has(2)) answer.reads.emplace_back(Access(q.in(2).shape.size()));
  return answer;
}
}  // namespace rules
}  // namespace warploom::graph
