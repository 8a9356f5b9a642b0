// Rules of what reduces: whole axes, windows, convolutions; and of the composites that stand on them.
#include "graph/rules.h"
namespace warploom::graph {
namespace {
constexpr std::int64_t kMaxTaps = std::int64_t{1} << 24, kMaxStep = std::int64_t{1} << 31;

bool is_product(OpKind op) { return class_of(op) == OpClass::convolution; }

// One entry a spatial axis, each of at least `least`; `otherwise` where the model says nothing.
Result<std::vector<std::int64_t>> spatial(const Question& q, std::string_view name, std::size_t count, std::int64_t least,
                                          std::int64_t otherwise) {
  if (!q.node.attributes.contains(std::string(name))) return std::vector<std::int64_t>(count, otherwise);
  std::vector<std::int64_t> values = q.node.integers(name);
  const bool fit = std::all_of(values.begin(), values.end(), [&](std::int64_t v) { return v >= least && v <= kMaxStep; });
  if (values.size() != count || !fit)
    return attribute_error(q, fmt::format("{} does not fit the spatial axes", name),
                           fmt::format("{} entries of {} or more", count, least), to_text(values));
  return values;
}

// Scale, bias and the like: so many elements along one axis.
Status check_vector(const Question& q, std::size_t i, std::int64_t size) {
  if (!q.has(i) || q.in(i).shape == Shape{size}) return ok();
  return shape_error(q, fmt::format("input {} does not fit the channels", i), to_text(Shape{size}), to_text(q.in(i).shape));
}

Status check_channels(const Question& q) {  // a batch, channels, and maybe more
  if (q.in(0).shape.size() >= 2) return ok();
  return shape_error(q, "an input lacks its channels", "2 axes or more", to_text(q.in(0).shape));
}
}  // namespace
Result<WindowSpec> window_spec(const Question& q) {
  const Shape& in = q.in(0).shape;
  if (in.size() < 3) return shape_error(q, "an input has no spatial axes", "3 axes or more", to_text(in));
  const std::size_t count = in.size() - 2;
  WindowSpec spec;
  const bool has_kernel = q.node.attributes.contains("kernel_shape");
  if (is_product(q.node.op)) {
    spec.kernel.assign(q.in(1).shape.begin() + 2, q.in(1).shape.end());
    if (has_kernel && q.node.integers("kernel_shape") != spec.kernel)
      return attribute_error(q, "kernel_shape differs from the weights", to_text(spec.kernel),
                             to_text(q.node.integers("kernel_shape")));
  } else if (!has_kernel) {
    return attribute_error(q, "the window's size is missing", "attribute kernel_shape", "nothing");
  } else {
    WARPLOOM_TRY(spec.kernel, spatial(q, "kernel_shape", count, 1, 1));
  }
  std::int64_t taps = 1;
  for (std::int64_t size : spec.kernel) {
    if (size < 1) return shape_error(q, "a window is empty", "sizes of 1 or more", to_text(spec.kernel));
    if (size > kMaxTaps / taps) return q.error(ErrorCode::kOnnxTooLarge, "a window is too large", "at most 2^24 elements", to_text(spec.kernel));
    taps *= size;
  }
  WARPLOOM_TRY(spec.strides, spatial(q, "strides", count, 1, 1));
  WARPLOOM_TRY(spec.dilations, spatial(q, "dilations", count, 1, 1));
  WARPLOOM_TRY(const std::vector<std::int64_t> pads, spatial(q, "pads", 2 * count, 0, 0));
  const std::string automatic = q.node.attribute<std::string>("auto_pad", "NOTSET");
  constexpr std::string_view kPads[] = {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"};
  if (std::find(std::begin(kPads), std::end(kPads), automatic) == std::end(kPads))
    return attribute_error(q, "auto_pad has an unknown value", fmt::format("{}", fmt::join(kPads, ", ")), automatic);
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t size = in[i + 2], stride = spec.strides[i], reach = (spec.kernel[i] - 1) * spec.dilations[i] + 1;
    std::int64_t before = automatic == "NOTSET" ? pads[i] : 0, after = automatic == "NOTSET" ? pads[count + i] : 0;
    if (automatic.starts_with("SAME")) {
      const std::int64_t total = std::max<std::int64_t>(((size + stride - 1) / stride - 1) * stride + reach - size, 0);
      before = automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
      after = total - before;
    }
    const std::int64_t room = size + before + after - reach;
    if (room < 0) return shape_error(q, "a window is larger than what it slides over", to_text(in), to_text(spec.kernel));
    std::int64_t made = room / stride + 1;
    spec.counted.push_back(after);
    if (q.node.integer("ceil_mode") != 0 && room % stride != 0 && made * stride < size + before) {
      ++made;  // no window begins beyond the input and what is before it
      after = (made - 1) * stride + reach - size - before;
    }
    spec.before.push_back(before);
    spec.after.push_back(after);
    spec.size.push_back(made);
  }
  return spec;
}

Result<std::vector<std::int64_t>> reduced_axes(const Question& q) {
  std::vector<std::int64_t> wanted = q.node.integers("axes");
  const std::size_t rank = q.in(0).shape.size();
  if (q.has(1)) {
    if (q.node.attributes.contains("axes"))
      return attribute_error(q, "axes are given twice", "an attribute or an input", "both");
    WARPLOOM_TRY(wanted, list(q, 1, "the list of axes"));
  }
  WARPLOOM_TRY(const std::vector<int> found, axes(q, wanted, rank));
  std::vector<std::int64_t> over(found.begin(), found.end());
  if (!over.empty() || q.node.integer("noop_with_empty_axes") != 0) return over;
  over.resize(rank);
  std::iota(over.begin(), over.end(), 0);
  return over;
}

namespace rules {
Result<Answer> reduce(const Question& q) {
  const Dtype dtype = q.in(0).dtype;
  const bool extreme = q.node.op == OpKind::ReduceMax || q.node.op == OpKind::ReduceMin;
  const bool floats = class_of(q.node.op) == OpClass::composite;
  if (is_float(dtype) ? !is_wide_float(dtype) : floats || (dtype == Dtype::boolean && !extreme))
    return type_error(q, floats ? "f64, f32, bf16 or f16" : "a number", std::string(name_of(dtype)));
  WARPLOOM_TRY(const std::vector<std::int64_t> over, reduced_axes(q));
  Shape shape = q.in(0).shape;
  for (auto axis = over.rbegin(); axis != over.rend(); ++axis)
    if (q.node.integer("keepdims", 1) != 0) shape[static_cast<std::size_t>(*axis)] = 1;
    else shape.erase(shape.begin() + *axis);
  return Answer{dtype, shape};
}

Result<Answer> pool(const Question& q) {
  const Dtype dtype = q.in(0).dtype;
  const bool maximum = q.node.op == OpKind::MaxPool;
  if (is_float(dtype) ? !is_wide_float(dtype) : !maximum || dtype == Dtype::boolean)
    return type_error(q, "f64, f32, bf16 or f16", std::string(name_of(dtype)));
  if (q.node.integer("storage_order") != 0)
    return attribute_error(q, "indices in column order are not supported", "storage_order 0", "1");
  WARPLOOM_TRY(const WindowSpec spec, window_spec(q));
  Shape shape = {q.in(0).shape[0], q.in(0).shape[1]};
  shape.insert(shape.end(), spec.size.begin(), spec.size.end());
  return Answer{dtype, shape};
}

Result<Answer> global_pool(const Question& q) {
  WARPLOOM_CHECK(same_type(q, true));
  WARPLOOM_CHECK(check_channels(q));
  Shape shape(q.in(0).shape.size(), 1);
  std::copy_n(q.in(0).shape.begin(), 2, shape.begin());
  return Answer{q.in(0).dtype, shape};
}

Result<Answer> conv(const Question& q) {
  WARPLOOM_CHECK(same_type(q, true));
  const Shape &in = q.in(0).shape, &weights = q.in(1).shape;
  const std::int64_t groups = q.node.integer("group", 1);
  if (in.size() < 3 || weights.size() != in.size())
    return shape_error(q, "the weights have not as many axes as the input", "3 axes or more, as many each",
                       to_text(in) + " and " + to_text(weights));
  if (groups < 1 || weights[0] % groups != 0 || in[1] % groups != 0 || in[1] / groups != weights[1])
    return shape_error(q, "the channels of input and weights do not fit", fmt::format("[M,{}/{},..]", in[1], groups),
                       to_text(weights));
  WARPLOOM_CHECK(check_vector(q, 2, weights[0]));
  WARPLOOM_TRY(const WindowSpec spec, window_spec(q));
  Shape shape = {in[0], weights[0]};
  shape.insert(shape.end(), spec.size.begin(), spec.size.end());
  return Answer{q.in(0).dtype, shape};
}

Result<Answer> softmax(const Question& q) {
  WARPLOOM_CHECK(same_type(q, true));
  WARPLOOM_CHECK(normalized_axis(q.node.integer("axis"), q.in(0).shape.size(), q.place));
  return Answer{q.in(0).dtype, q.in(0).shape};
}

Result<Answer> layer_norm(const Question& q) {
  WARPLOOM_CHECK(same_type(q, true));
  const Shape& in = q.in(0).shape;
  WARPLOOM_TRY(const int axis, normalized_axis(q.node.integer("axis"), in.size(), q.place));
  if (q.node.integer("stash_type", 1) != 1)
    return attribute_error(q, "statistics in another type than f32 are not supported", "stash_type 1",
                           std::to_string(q.node.integer("stash_type")));
  Shape line(in.begin() + axis, in.end()), statistics = in;
  std::fill(statistics.begin() + axis, statistics.end(), 1);
  for (std::size_t i : {1u, 2u})
    if (q.has(i)) {
      WARPLOOM_TRY(const Shape stretched, broadcast(line, q.in(i).shape, q.place));
      if (stretched != line) return shape_error(q, "scale or bias does not stretch to what is normalised", to_text(line), to_text(q.in(i).shape));
    }
  const Dtype stash = q.in(0).dtype == Dtype::f64 ? Dtype::f64 : Dtype::f32;
  return Answer{q.in(0).dtype, in, {{stash, statistics}, {stash, statistics}}};
}

Result<Answer> batch_norm(const Question& q) {
  if (q.node.integer("training_mode") != 0)
    return q.error(ErrorCode::kOnnxAttribute, "BatchNormalization in training mode is not supported", "training_mode 0", "1",
                   "export for inference");
  WARPLOOM_CHECK(check_channels(q));
  for (std::size_t i = 0; i < 5; ++i) {
    if (!is_wide_float(q.in(i).dtype)) return type_error(q, "f64, f32, bf16 or f16", std::string(name_of(q.in(i).dtype)));
    if (i > 0) WARPLOOM_CHECK(check_vector(q, i, q.in(0).shape[1]));
  }
  return Answer{q.in(0).dtype, q.in(0).shape};
}
}  // namespace rules
}  // namespace warploom::graph
