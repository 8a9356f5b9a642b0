// Rules of the operators that keep, move or leave out elements: their shapes follow from constants.
#include "graph/rules.h"
namespace warploom::graph {
Result<std::vector<std::int64_t>> list(const Question& q, std::size_t i, std::string_view what, std::size_t most) {
  const Tensor& tensor = q.in(i);
  if (tensor.dtype != Dtype::i64 && tensor.dtype != Dtype::i32)
    return q.error(ErrorCode::kOnnxType, fmt::format("{} is no list of integers", what), "i64",
                   std::string(name_of(tensor.dtype)));
  auto values = constant_integers(q.graph, q.node.inputs[i]);
  if (!values)
    return q.error(ErrorCode::kOnnxDynamicShape, fmt::format("{} is not known from the model", what),
                   "a constant, or something computed from constants and shapes", tensor.name,
                   "export the model with fixed shapes");
  if (tensor.shape.size() > 1 || values->size() > most)
    return shape_error(q, fmt::format("{} is no list", what), fmt::format("one axis of at most {} entries", most),
                       to_text(tensor.shape));
  return *values;
}

Result<std::vector<int>> axes(const Question& q, const std::vector<std::int64_t>& wanted, std::size_t rank) {
  std::vector<int> found;
  for (std::int64_t axis : wanted) {
    WARPLOOM_TRY(int normal, normalized_axis(axis, rank, q.place));
    found.push_back(normal);
  }
  std::sort(found.begin(), found.end());
  if (std::adjacent_find(found.begin(), found.end()) != found.end())
    return q.error(ErrorCode::kOnnxAttribute, "an axis is named twice", "distinct axes", to_text(wanted));
  return found;
}
namespace {
constexpr std::int64_t kMaxTile = 1 << 15;
}
namespace rules {
Result<Answer> reshape(const Question& q) {
  WARPLOOM_TRY(Shape shape, list(q, 1, "the new shape"));
  const Shape& from = q.in(0).shape;
  int inferred = -1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && q.node.integer("allowzero") == 0) {
      if (i >= from.size()) return shape_error(q, "a 0 copies an axis that is not there", to_text(from), to_text(shape));
      shape[i] = from[i];
    } else if (shape[i] == -1 && inferred < 0) {
      inferred = static_cast<int>(i);
    } else if (shape[i] < 0) {
      return shape_error(q, "a new size is negative", "sizes of 0 or more and at most one -1", to_text(shape));
    }
  }
  Shape known = shape;
  if (inferred >= 0) known[static_cast<std::size_t>(inferred)] = 1;
  WARPLOOM_TRY(std::int64_t count, checked_element_count(known, q.place));
  const std::int64_t total = element_count(from);
  if (inferred >= 0) {
    if (count == 0 || total % count != 0)
      return shape_error(q, "no size fits in the place of -1", fmt::format("{} elements", total), to_text(shape));
    shape[static_cast<std::size_t>(inferred)] = total / count;
    count = total;
  }
  if (count != total)
    return shape_error(q, "the new shape has another number of elements", fmt::format("{} elements", total), to_text(shape));
  return Answer{q.in(0).dtype, shape};
}

Result<Answer> unsqueeze(const Question& q) {
  WARPLOOM_TRY(std::vector<std::int64_t> wanted, list(q, 1, "the list of axes"));
  const std::size_t rank = q.in(0).shape.size() + wanted.size();
  WARPLOOM_TRY(std::vector<int> where, axes(q, wanted, rank));
  Shape shape = q.in(0).shape;
  for (int axis : where) shape.insert(shape.begin() + axis, 1);
  return Answer{q.in(0).dtype, shape};
}

Result<Answer> squeeze(const Question& q) {
  Shape shape = q.in(0).shape;
  if (!q.has(1)) {
    std::erase(shape, 1);
    return Answer{q.in(0).dtype, shape};
  }
  WARPLOOM_TRY(std::vector<std::int64_t> wanted, list(q, 1, "the list of axes"));
  WARPLOOM_TRY(std::vector<int> where, axes(q, wanted, shape.size()));
  for (auto axis = where.rbegin(); axis != where.rend(); ++axis) {
    if (shape[static_cast<std::size_t>(*axis)] != 1)
      return shape_error(q, "an axis to squeeze out is larger than 1", "size 1", to_text(q.in(0).shape));
    shape.erase(shape.begin() + *axis);
  }
  return Answer{q.in(0).dtype, shape};
}

Result<Answer> flatten(const Question& q) {
  const Shape& from = q.in(0).shape;
  const auto rank = static_cast<std::int64_t>(from.size());
  std::int64_t axis = q.node.integer("axis");
  if (axis < -rank || axis > rank)
    return q.error(ErrorCode::kOnnxAttribute, "an axis is outside the tensor's rank", fmt::format("{} to {}", -rank, rank),
                   std::to_string(axis));
  if (axis < 0) axis += rank;
  return Answer{q.in(0).dtype,
                {element_count(Shape(from.begin(), from.begin() + axis)), element_count(Shape(from.begin() + axis, from.end()))}};
}

Result<Answer> transpose(const Question& q) {
  const Shape& from = q.in(0).shape;
  if (!q.node.attributes.contains("perm")) return Answer{q.in(0).dtype, Shape(from.rbegin(), from.rend())};
  const std::vector<std::int64_t> perm = q.node.integers("perm");
  std::vector<std::int64_t> sorted = perm, all(from.size());
  std::sort(sorted.begin(), sorted.end());
  std::iota(all.begin(), all.end(), 0);
  if (sorted != all)
    return q.error(ErrorCode::kOnnxAttribute, "perm is no permutation of the axes",
                   fmt::format("each of 0 to {} once", static_cast<std::int64_t>(from.size()) - 1), to_text(perm));
  Shape shape;
  for (std::int64_t axis : perm) shape.push_back(from[static_cast<std::size_t>(axis)]);
  return Answer{q.in(0).dtype, shape};
}

Result<Answer> expand(const Question& q) {
  WARPLOOM_TRY(Shape wanted, list(q, 1, "the new shape"));
  for (std::int64_t size : wanted)
    if (size < 0) return shape_error(q, "a new size is negative", "sizes of 0 or more", to_text(wanted));
  WARPLOOM_TRY(Shape shape, broadcast(q.in(0).shape, wanted, q.place));
  return Answer{q.in(0).dtype, shape};
}

Result<Answer> concat(const Question& q) {
  if (!q.node.attributes.contains("axis")) return q.error(ErrorCode::kOnnxAttribute, "Concat lacks its axis", "attribute axis");
  Shape shape = q.in(0).shape;
  WARPLOOM_TRY(const int axis, normalized_axis(q.node.integer("axis"), shape.size(), q.place));
  const auto at = static_cast<std::size_t>(axis);
  for (std::size_t i = 1; i < q.node.inputs.size(); ++i) {
    Shape other = q.in(i).shape;
    if (q.in(i).dtype != q.in(0).dtype)
      return q.error(ErrorCode::kOnnxType, "Concat of different types", std::string(name_of(q.in(0).dtype)),
                     std::string(name_of(q.in(i).dtype)));
    const bool same_rank = other.size() == shape.size();
    const std::int64_t added = same_rank ? other[at] : 0;
    if (same_rank) other[at] = shape[at];
    if (other != shape)
      return shape_error(q, "Concat of shapes that differ off its axis", to_text(shape), to_text(q.in(i).shape));
    shape[at] += added;
    WARPLOOM_CHECK(checked_element_count(shape, q.place));
  }
  return Answer{q.in(0).dtype, shape};
}

Result<Answer> gather(const Question& q) {
  const Shape &from = q.in(0).shape, &indices = q.in(1).shape;
  if (q.in(1).dtype != Dtype::i64 && q.in(1).dtype != Dtype::i32)
    return q.error(ErrorCode::kOnnxType, "indices are no integers", "i64 or i32", std::string(name_of(q.in(1).dtype)));
  WARPLOOM_TRY(const int axis, normalized_axis(q.node.integer("axis"), from.size(), q.place));
  Shape shape(from.begin(), from.begin() + axis);
  shape.insert(shape.end(), indices.begin(), indices.end());
  shape.insert(shape.end(), from.begin() + axis + 1, from.end());
  if (const auto known = constant_integers(q.graph, q.node.inputs[1]))
    for (std::int64_t index : *known) {
      const std::int64_t size = from[static_cast<std::size_t>(axis)];
      if (index < -size || index >= size)
        return shape_error(q, "an index is outside the axis", fmt::format("{} to {}", -size, size - 1), std::to_string(index));
    }
  return Answer{q.in(0).dtype, shape};
}

Result<Answer> slice(const Question& q) {
  WARPLOOM_TRY(SliceSpec spec, slice_spec(q));
  return Answer{q.in(0).dtype, spec.size};
}

Result<Answer> pad(const Question& q) {
  const std::string mode = q.node.attribute<std::string>("mode", "constant");
  if (mode != "constant") return attribute_error(q, "the mode of a Pad is not supported", "constant", mode);
  if (q.has(2) && (q.in(2).dtype != q.in(0).dtype || element_count(q.in(2).shape) != 1))
    return type_error(q, fmt::format("one value of {}", name_of(q.in(0).dtype)), to_text(q.in(2)));
  WARPLOOM_TRY(const PadSpec spec, pad_spec(q));
  Shape shape = q.in(0).shape;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    shape[i] += spec.before[i] + spec.after[i];
    if (shape[i] < 0) return shape_error(q, "a Pad crops more than there is", "sizes of 0 or more", to_text(shape));
  }
  return Answer{q.in(0).dtype, shape};
}

Result<Answer> split(const Question& q) {
  const Shape& from = q.in(0).shape;
  WARPLOOM_TRY(const int axis, normalized_axis(q.node.integer("axis"), from.size(), q.place));
  const std::int64_t size = from[static_cast<std::size_t>(axis)], count = static_cast<std::int64_t>(q.node.outputs.size());
  if (q.node.integer("num_outputs", count) != count)
    return attribute_error(q, "num_outputs differs from the outputs", std::to_string(count),
                           std::to_string(q.node.integer("num_outputs")));
  const std::int64_t part = (size + count - 1) / count;
  std::vector<std::int64_t> parts(static_cast<std::size_t>(count), part);
  parts.back() = size - part * (count - 1);  // the last may be smaller
  if (q.has(1)) { WARPLOOM_TRY(parts, list(q, 1, "the list of parts", std::numeric_limits<int>::max())); }
  const bool fit = std::all_of(parts.begin(), parts.end(), [&](std::int64_t x) { return x >= 0 && x <= size; });
  if (!fit || static_cast<std::int64_t>(parts.size()) != count ||
      std::accumulate(parts.begin(), parts.end(), std::int64_t{0}) != size)
    return shape_error(q, "the parts of a Split do not make up the axis", fmt::format("{} parts of {}", count, size),
                       to_text(parts));
  Answer answer{q.in(0).dtype, from};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Shape& shape = i == 0 ? answer.shape : answer.more.emplace_back(q.in(0).dtype, from).shape;
    shape[static_cast<std::size_t>(axis)] = parts[i];
  }
  return answer;
}

Result<Answer> tile(const Question& q) {
  WARPLOOM_TRY(const std::vector<std::int64_t> repeats, list(q, 1, "the list of repeats"));
  Shape shape = q.in(0).shape;
  const bool fit = std::all_of(repeats.begin(), repeats.end(), [](std::int64_t x) { return x >= 0 && x <= kMaxElements; });
  if (repeats.size() != shape.size() || !fit)
    return shape_error(q, "the repeats do not fit the axes", fmt::format("{} entries of 0 or more", shape.size()),
                       to_text(repeats));
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] > 0 && repeats[i] > kMaxElements / shape[i])
      return q.error(ErrorCode::kOnnxTooLarge, "a tensor has too many elements", fmt::format("at most {}", kMaxElements),
                     to_text(repeats));
    shape[i] *= repeats[i];
  }
  return Answer{q.in(0).dtype, shape};
}

Result<Answer> blocks(const Question& q) {  // DepthToSpace, SpaceToDepth
  const Shape& in = q.in(0).shape;
  const std::int64_t block = q.node.integer("blocksize");
  const std::string mode = q.node.attribute<std::string>("mode", "DCR");
  if (block < 1 || block > kMaxTile)
    return attribute_error(q, "blocksize has an unfit value", "1 or more", std::to_string(block));
  if (mode != "DCR" && mode != "CRD") return attribute_error(q, "mode has an unknown value", "DCR or CRD", mode);
  const bool spread = q.node.op == OpKind::DepthToSpace;
  if (in.size() != 4 || (spread ? in[1] % (block * block) != 0 : in[2] % block != 0 || in[3] % block != 0))
    return shape_error(q, "blocks do not fit the input", fmt::format("4 axes, with blocks of {}", block), to_text(in));
  if (spread) return Answer{q.in(0).dtype, {in[0], in[1] / (block * block), in[2] * block, in[3] * block}};
  return Answer{q.in(0).dtype, {in[0], in[1] * block * block, in[2] / block, in[3] / block}};
}

Result<Answer> trilu(const Question& q) {
  if (q.in(0).shape.size() < 2) return shape_error(q, "a triangle of no matrix", "2 axes or more", to_text(q.in(0).shape));
  if (q.has(1)) { WARPLOOM_CHECK(list(q, 1, "the diagonal")); }
  if (q.has(1) && element_count(q.in(1).shape) != 1)
    return shape_error(q, "the diagonal is no scalar", "[]", to_text(q.in(1).shape));
  return Answer{q.in(0).dtype, q.in(0).shape};
}

Result<Answer> range(const Question& q) {
  WARPLOOM_CHECK(same_type(q, false));
  WARPLOOM_TRY(const RangeSpec spec, range_spec(q));
  return Answer{q.in(0).dtype, {spec.count}};
}

Result<Answer> shape_of(const Question& q) {
  const auto [begin, end] = shape_range(q.node, q.in(0).shape.size());
  return Answer{Dtype::i64, {std::max<std::int64_t>(end - begin, 0)}};
}
}  // namespace rules
Result<SliceSpec> slice_spec(const Question& q) {
  const Shape& from = q.in(0).shape;
  WARPLOOM_TRY(std::vector<std::int64_t> starts, list(q, 1, "the list of starts"));
  WARPLOOM_TRY(std::vector<std::int64_t> ends, list(q, 2, "the list of ends"));
  std::vector<std::int64_t> where(starts.size()), steps(starts.size(), 1);
  std::iota(where.begin(), where.end(), 0);
  if (q.has(3)) { WARPLOOM_TRY(where, list(q, 3, "the list of axes")); }
  if (q.has(4)) { WARPLOOM_TRY(steps, list(q, 4, "the list of steps")); }
  if (ends.size() != starts.size() || where.size() != starts.size() || steps.size() != starts.size())
    return shape_error(q, "the lists of a Slice differ in length", fmt::format("{} entries each", starts.size()),
                       fmt::format("{} ends, {} axes, {} steps", ends.size(), where.size(), steps.size()));
  WARPLOOM_CHECK(axes(q, where, from.size()));
  SliceSpec spec{std::vector<std::int64_t>(from.size(), 0), std::vector<std::int64_t>(from.size(), 1), from};
  for (std::size_t i = 0; i < starts.size(); ++i) {
    WARPLOOM_TRY(const int axis, normalized_axis(where[i], from.size(), q.place));
    const auto at = static_cast<std::size_t>(axis);
    const std::int64_t size = from[at];
    // Beyond the axis in steps is the same as just one step beyond it; clamping keeps the arithmetic small.
    const std::int64_t step = std::clamp(steps[i], -(size + 1), size + 1);
    if (steps[i] == 0) return shape_error(q, "a step of a Slice is 0", "any other step", "0");
    if (size == 0) continue;  // nothing to take, wherever the slice points
    const auto clamped = [&](std::int64_t value, std::int64_t low, std::int64_t high) {
      return std::clamp(value < 0 ? std::max(value, -2 * size - 2) + size : value, low, high);
    };
    const std::int64_t begin = step > 0 ? clamped(starts[i], 0, size) : clamped(starts[i], 0, size - 1);
    const std::int64_t end = step > 0 ? clamped(ends[i], 0, size) : clamped(ends[i], -1, size - 1);
    const std::int64_t distance = step > 0 ? end - begin : begin - end;
    const std::int64_t pace = step > 0 ? step : -step;
    spec.begin[at] = begin;
    spec.step[at] = step;
    spec.size[at] = distance <= 0 ? 0 : (distance + pace - 1) / pace;
  }
  return spec;
}

Result<PadSpec> pad_spec(const Question& q) {
  const std::size_t rank = q.in(0).shape.size();
  WARPLOOM_TRY(const std::vector<std::int64_t> pads, list(q, 1, "the list of pads", 2 * kMaxRank));
  std::vector<std::int64_t> where(rank);
  std::iota(where.begin(), where.end(), 0);
  if (q.has(3)) { WARPLOOM_TRY(where, list(q, 3, "the list of axes")); }
  WARPLOOM_CHECK(axes(q, where, rank));
  if (pads.size() != 2 * where.size())
    return shape_error(q, "the pads do not fit the axes", fmt::format("{} entries", 2 * where.size()), to_text(pads));
  PadSpec spec{std::vector<std::int64_t>(rank, 0), std::vector<std::int64_t>(rank, 0)};
  for (std::size_t i = 0; i < where.size(); ++i) {
    const auto axis = static_cast<std::size_t>(*normalized_axis(where[i], rank, q.place));
    spec.before[axis] = std::clamp(pads[i], -kMaxElements, kMaxElements);
    spec.after[axis] = std::clamp(pads[where.size() + i], -kMaxElements, kMaxElements);
  }
  return spec;
}

Result<RangeSpec> range_spec(const Question& q) {
  std::array<double, 3> bounds{};
  for (std::size_t i = 0; i < 3; ++i) {
    const auto value = constant_scalar(q.graph, q.node.inputs[i]);
    if (!value)
      return q.error(ErrorCode::kOnnxDynamicShape, "a bound of a Range is not known from the model", "a constant scalar",
                     to_text(q.in(i)), "export the model with fixed shapes");
    bounds[i] = *value;
  }
  const double count = std::ceil((bounds[1] - bounds[0]) / bounds[2]);
  if (std::isnan(count) || count > static_cast<double>(kMaxElements))
    return shape_error(q, "a Range has no end", "bounds and a step of a finite list", fmt::format("{}", fmt::join(bounds, ", ")));
  return RangeSpec{bounds[0], bounds[2], static_cast<std::int64_t>(std::max(count, 0.0))};
}

std::pair<std::int64_t, std::int64_t> shape_range(const Node& node, std::size_t rank) {
  const auto size = static_cast<std::int64_t>(rank);
  const auto clamped = [&](std::int64_t axis) {
    return std::clamp<std::int64_t>(axis < -size ? 0 : axis < 0 ? axis + size : axis, 0, size);
  };
  return {clamped(node.integer("start")), clamped(node.integer("end", size))};
}
}  // namespace warploom::graph
