// Rules of what reduces: whole axes, windows, convolutions; and what composites that stand on them
// share with these.
#include "graph/rules.h"

namespace warploom::graph {
namespace {
constexpr int64_t kMaxTaps = int64_t{1} << 24;
constexpr int64_t kMaxStep = int64_t{1} << 31;

std::string auto_pad(const NodeContext& q) {
  return q.node.attribute<std::string>("auto_pad", "NOTSET");
}

// One entry a spatial axis, each of at least `least`; `otherwise` where the model says nothing.
Result<List> spatial(const NodeContext& q, std::string_view name, size_t count, int64_t least,
                     int64_t otherwise) {
  if (!q.node.attributes.contains(std::string(name))) return List(count, otherwise);
  const List values = q.node.integers(name);
  const bool fit =
      std::ranges::all_of(values, [&](int64_t v) { return v >= least && v <= kMaxStep; });
  if (values.size() != count || !fit)
    return q.error(kAttribute, fmt::format("{} does not fit the spatial axes", name),
                   fmt::format("{} entries of {} or more", count, least), values);
  return values;
}

bool convolves(const NodeContext& q) {
  return q.node.op == OpKind::Conv || q.node.op == OpKind::ConvTranspose;
}

// Size, strides and dilations; as `before` and `after` what the model says of pads.
Result<WindowSpec> declared_window(const NodeContext& q) {
  const Shape& in = q.in(0).shape;
  if (in.size() < 3) return q.error(kShape, "an input has no spatial axes", "3 axes or more", in);
  const size_t count = in.size() - 2;
  WindowSpec spec;
  const bool has_kernel = q.node.attributes.contains("kernel_shape");
  if (convolves(q)) {
    spec.kernel = entries(q.in(1).shape, 2);
    if (has_kernel && q.node.integers("kernel_shape") != spec.kernel)
      return q.error(kAttribute, "kernel_shape differs from the weights", spec.kernel,
                     q.node.integers("kernel_shape"));
  } else if (!has_kernel) {
    return q.error(kAttribute, "the window's size is missing", "attribute kernel_shape", "nothing");
  } else {
    WARPLOOM_TRY(spec.kernel, spatial(q, "kernel_shape", count, 1, 1));
  }
  int64_t taps = 1;
  for (int64_t size : spec.kernel) {
    if (size < 1) return q.error(kShape, "a window is empty", "sizes of 1 or more", spec.kernel);
    if (size > kMaxTaps / taps)
      return q.error(ErrorCode::kOnnxTooLarge, "a window is too large", "at most 2^24 elements",
                     spec.kernel);
    taps *= size;
  }
  WARPLOOM_TRY(spec.strides, spatial(q, "strides", count, 1, 1));
  WARPLOOM_TRY(spec.dilations, spatial(q, "dilations", count, 1, 1));
  WARPLOOM_TRY(spec.before, spatial(q, "pads", 2 * count, 0, 0));
  if (auto_pad(q) != "NOTSET") spec.before.assign(2 * count, 0);
  spec.after = entries(spec.before, count, 2 * count);
  spec.before.resize(count);
  return spec;
}

Answer windows(const NodeContext& q, const WindowSpec& spec, int64_t channels) {
  Answer answer{q.in(0).dtype,
                chained({q.in(0).shape[0], channels}, spec.size),
                {Access(2 + spec.size.size())}};
  Access& access = *answer.reads[0];
  access[0].axis = 0;
  for (size_t i = 0; i < spec.size.size(); ++i)
    access[i + 2] = {static_cast<int>(i + 2), -spec.before[i], spec.strides[i], spec.kernel[i],
                     spec.dilations[i]};
  return answer;
}
}  // namespace

bool is_zero(const Tensor& tensor) {
  return tensor.constant &&
         std::ranges::all_of(*tensor.constant, [](std::byte byte) { return byte == std::byte{0}; });
}

Status check_vector(const NodeContext& q, size_t i, int64_t size) {
  if (!q.has(i) || q.in(i).shape == Shape{size}) return ok();
  if (convolves(q) && is_zero(q.in(i)))
    return ok();  // exporters write zeros of other shapes for no bias
  return q.error(kShape, fmt::format("input {} does not fit the channels", i), Shape{size},
                 q.in(i).shape);
}

Status check_weights(const NodeContext& q) {  // [M,C/g,..], turned round [C,M/g,..]
  WARPLOOM_CHECK(same_type(q, true));
  const Shape& in = q.in(0).shape;
  const Shape& weights = q.in(1).shape;
  const bool turned = q.node.op == OpKind::ConvTranspose;
  if (in.size() < 3 || weights.size() != in.size())
    return q.error(kShape, "the weights have not as many axes as the input",
                   "3 axes or more, as many each", to_text(in) + " and " + to_text(weights));
  const int64_t groups = q.node.integer("group", 1);
  const int64_t channels = turned ? in[1] : weights[0];
  if (groups < 1 || channels % groups != 0 ||
      (turned ? weights[0] != in[1] : in[1] % groups != 0 || in[1] / groups != weights[1]))
    return q.error(kShape, "the channels of input and weights do not fit",
                   turned ? fmt::format("[{},M/{},..]", in[1], groups)
                          : fmt::format("[M,{}/{},..]", in[1], groups),
                   weights);
  return check_vector(q, 2, turned ? weights[1] * groups : weights[0]);
}

Result<WindowSpec> window_spec(const NodeContext& q) {
  WARPLOOM_TRY(WindowSpec spec, declared_window(q));
  const Shape& in = q.in(0).shape;
  const std::string automatic = auto_pad(q);
  for (size_t i = 0; i < spec.kernel.size(); ++i) {
    const int64_t size = in[i + 2];
    const int64_t stride = spec.strides[i];
    const int64_t reach = (spec.kernel[i] - 1) * spec.dilations[i] + 1;
    int64_t& before = spec.before[i];
    int64_t& after = spec.after[i];
    if (automatic.starts_with("SAME")) {
      const int64_t total =
          std::max<int64_t>((ceil_div(size, stride) - 1) * stride + reach - size, 0);
      before = automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
      after = total - before;
    }
    const int64_t room = size + before + after - reach;
    if (room < 0)
      return q.error(kShape, "a window is larger than what it slides over", in, spec.kernel);
    int64_t made = room / stride + 1;
    spec.counted.push_back(after);
    if (q.node.integer("ceil_mode") != 0 && room % stride != 0 && made * stride < size + before) {
      ++made;  // no window begins beyond the input and what is before it
      after = (made - 1) * stride + reach - size - before;
    }
    spec.size.push_back(made);
  }
  return spec;
}

Result<WindowSpec> transposed_spec(const NodeContext& q) {
  WARPLOOM_TRY(WindowSpec spec, declared_window(q));
  const Shape& in = q.in(0).shape;
  const size_t count = spec.kernel.size();
  const bool asked = q.node.attributes.contains("output_shape");
  const bool same = auto_pad(q).starts_with("SAME");
  WARPLOOM_TRY(const List wanted, spatial(q, "output_shape", count, 1, 1));
  WARPLOOM_TRY(const List added, spatial(q, "output_padding", count, 0, 0));
  for (size_t i = 0; i < count; ++i) {
    const int64_t reach = (spec.kernel[i] - 1) * spec.dilations[i];
    const int64_t whole = (in[i + 2] - 1) * spec.strides[i] + reach + 1 + added[i];
    int64_t& before = spec.before[i];
    int64_t& after = spec.after[i];
    if (asked || same) {
      const int64_t cut = whole - (asked ? wanted[i] : in[i + 2] * spec.strides[i]);
      before = std::max<int64_t>(auto_pad(q) == "SAME_UPPER" ? cut / 2 : cut - cut / 2, 0);
      after = cut - before;
    }
    spec.size.push_back(whole - before - after);
    if (spec.size.back() < 1 || in[i + 2] < 1)
      return q.error(kShape, "nothing is left of a transposed convolution", "sizes of 1 or more",
                     spec.size);
    before = reach - before;
    after = reach + added[i] - after;
  }
  return spec;
}

Result<std::vector<int64_t>> reduced_axes(const NodeContext& q) {
  if (q.node.attributes.contains("axis")) {  // ArgMax, ArgMin
    WARPLOOM_TRY(const size_t axis, checked_axis(q));
    return List{static_cast<int64_t>(axis)};
  }
  List wanted = q.node.integers("axes");
  const size_t rank = q.in(0).shape.size();
  if (q.has(1)) {
    if (q.node.attributes.contains("axes"))
      return q.error(kAttribute, "axes are given twice", "an attribute or an input", "both");
    WARPLOOM_TRY(wanted, list(q, 1, "the list of axes"));
  }
  WARPLOOM_TRY(const List over, axes(q, wanted, rank));
  return over.empty() && q.node.integer("noop_with_empty_axes") == 0 ? span(0, rank) : over;
}

namespace rules {
Result<Answer> reduce(const NodeContext& q) {
  WARPLOOM_CHECK(
      check_number(q, 0, false, q.node.op == OpKind::ReduceMax || q.node.op == OpKind::ReduceMin));
  WARPLOOM_TRY(const List over, reduced_axes(q));
  Answer answer{q.in(0).dtype, {}};
  Access access(q.in(0).shape.size());
  for (size_t i = 0; i < access.size(); ++i) {
    const bool gone = std::ranges::binary_search(over, static_cast<int64_t>(i));
    if (!gone) access[i].axis = static_cast<int>(answer.shape.size());
    if (!gone || q.node.integer("keepdims", 1) != 0)
      answer.shape.push_back(gone ? 1 : q.in(0).shape[i]);
  }
  answer.reads = {access};
  return answer;
}

// The scanned axis is the one that is read whole.
Result<Answer> cum_sum(const NodeContext& q) {
  WARPLOOM_CHECK(check_number(q, 0));
  Access access = same_axes(q.in(0).shape.size());
  WARPLOOM_TRY(const List named, list(q, 1, "the axis", 1));
  if (named.empty()) return q.error(kShape, "the axis is missing", "one integer", "none");
  WARPLOOM_TRY(const List axis, axes(q, named, access.size()));
  access[axis[0]] = {};
  return Answer{q.in(0).dtype, q.in(0).shape, {access, std::nullopt}};
}

Result<Answer> pool(const NodeContext& q) {
  WARPLOOM_CHECK(check_number(q, 0, q.node.op != OpKind::MaxPool));
  WARPLOOM_TRY(const WindowSpec spec, window_spec(q));
  Answer answer = windows(q, spec, q.in(0).shape[1]);
  (*answer.reads[0])[1].axis = 1;
  return answer;
}

Result<Answer> conv(const NodeContext& q) {
  WARPLOOM_CHECK(check_weights(q));
  WARPLOOM_TRY(const WindowSpec spec, window_spec(q));
  const Shape& weights = q.in(1).shape;
  Answer answer = windows(q, spec, weights[0]);
  if (weights[1] == 1 && weights[0] == q.node.integer("group", 1)) (*answer.reads[0])[1].axis = 1;
  answer.reads.emplace_back(Access(weights.size()));
  (*answer.reads[1])[0].axis = 1;
  if (q.has(2)) answer.reads.emplace_back(Access{{1}});
  return answer;
}
}  // namespace rules
}  // namespace warploom::graph
