// Rules of what reduces: whole axes, windows, convolutions; and what composites that stand on them
// share with these.
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "graph/graph.h"
#include "graph/operators.h"
#include "graph/rules.h"

namespace warploom::graph {
namespace {
constexpr int64_t kMaxTaps = int64_t{1} << 24;
constexpr int64_t kMaxStep = int64_t{1} << 31;

std::string auto_pad(const NodeContext& context) {
  return context.node.attribute<std::string>("auto_pad", "NOTSET");
}

// One entry a spatial axis, each of at least `least`; `otherwise` where the model says nothing.
Result<List> spatial(const NodeContext& context, std::string_view name, size_t count, int64_t least,
                     int64_t otherwise) {
  if (!context.node.attributes.contains(std::string(name))) return List(count, otherwise);
  const List values = context.node.integers(name);
  const auto fits = [&](int64_t value) { return value >= least && value <= kMaxStep; };
  if (values.size() != count || !std::ranges::all_of(values, fits)) {
    const std::string message = fmt::format("{} does not fit the spatial axes", name);
    const std::string expected = fmt::format("{} entries of {} or more", count, least);
    return context.error(kAttribute, message, expected, values);
  }
  return values;
}

bool convolves(const NodeContext& context) {
  using enum OpKind;
  const OpKind op = context.node.op;
  return op == Conv || op == ConvTranspose || op == DeformConv;
}

// Size, strides and dilations; as `before` and `after` what the model says of pads.
Result<WindowSpec> declared_window(const NodeContext& context) {
  const Shape& in = context.in(0).shape;
  if (in.size() < 3)
    return context.error(kShape, "an input has no spatial axes", "3 axes or more", in);
  const size_t count = in.size() - 2;
  WindowSpec spec;
  const bool has_kernel = context.node.attributes.contains("kernel_shape");
  if (convolves(context)) {
    spec.kernel = entries(context.in(1).shape, 2);
    const List named = has_kernel ? context.node.integers("kernel_shape") : spec.kernel;
    if (named != spec.kernel)
      return context.error(kAttribute, "kernel_shape differs from the weights", spec.kernel, named);
  } else if (!has_kernel) {
    return context.error(kAttribute, "the window's size is missing", "attribute kernel_shape",
                         "nothing");
  } else {
    WARPLOOM_TRY(spec.kernel, spatial(context, "kernel_shape", count, 1, 1));
  }
  int64_t taps = 1;
  for (int64_t size : spec.kernel) {
    if (size < 1)
      return context.error(kShape, "a window is empty", "sizes of 1 or more", spec.kernel);
    if (size > kMaxTaps / taps)
      return context.error(ErrorCode::kOnnxTooLarge, "a window is too large",
                           "at most 2^24 elements", spec.kernel);
    taps *= size;
  }
  WARPLOOM_TRY(spec.strides, spatial(context, "strides", count, 1, 1));
  WARPLOOM_TRY(spec.dilations, spatial(context, "dilations", count, 1, 1));
  WARPLOOM_TRY(spec.before, spatial(context, "pads", 2 * count, 0, 0));
  if (auto_pad(context) != "NOTSET") spec.before.assign(2 * count, 0);
  spec.after = entries(spec.before, count, 2 * count);
  spec.before.resize(count);
  return spec;
}

InferredOutput windows(const NodeContext& context, const WindowSpec& spec, int64_t channels) {
  const Tensor& in = context.in(0);
  AxisSources sources(2 + spec.size.size());
  sources[0].axis = 0;
  for (size_t i = 0; i < spec.size.size(); ++i) {
    AxisSource& source = sources[i + 2];
    source.axis = as_int(i + 2);
    source.begin = -spec.before[i];
    source.step = spec.strides[i];
    source.taps = spec.kernel[i];
    source.dilation = spec.dilations[i];
  }
  const Shape images_and_channels = {in.shape[0], channels};
  return {in.dtype, chained(images_and_channels, spec.size), {sources}};
}
}  // namespace

bool is_zero(const Tensor& tensor) {
  const auto is_null = [](std::byte byte) { return byte == std::byte{0}; };
  return tensor.constant && std::ranges::all_of(*tensor.constant, is_null);
}

Status check_vector(const NodeContext& context, size_t i, int64_t size) {
  if (!context.has(i) || context.in(i).shape == Shape{size}) return ok();
  // Exporters write zeros of other shapes for no bias.
  if (convolves(context) && is_zero(context.in(i))) return ok();
  const std::string message = fmt::format("input {} does not fit the channels", i);
  return context.error(kShape, message, Shape{size}, context.in(i).shape);
}

// Of floats, or of i32, which the quantized convolutions are made of. Weights are [M,C/g,..], those
// of a ConvTranspose [C,M/g,..].
Status check_weights(const NodeContext& context) {
  WARPLOOM_CHECK(same_type(context, context.in(0).dtype != Dtype::i32));
  const Shape& in = context.in(0).shape;
  const Shape& weights = context.in(1).shape;
  const bool transposed = context.node.op == OpKind::ConvTranspose;
  if (in.size() < 3 || weights.size() != in.size()) {
    const std::string found = to_text(in) + " and " + to_text(weights);
    return context.error(kShape, "the weights have not as many axes as the input",
                         "3 axes or more, as many each", found);
  }
  const int64_t groups = context.node.integer("group", 1);
  const int64_t channels = transposed ? in[1] : weights[0];
  const auto fits = [&] {
    if (groups < 1 || channels % groups != 0) return false;
    if (transposed) return weights[0] == in[1];
    return in[1] % groups == 0 && in[1] / groups == weights[1];
  };
  if (!fits()) {
    std::string expected = fmt::format("[M,{}/{},..]", in[1], groups);
    if (transposed) expected = fmt::format("[{},M/{},..]", in[1], groups);
    const std::string message = "the channels of input and weights do not fit";
    return context.error(kShape, message, expected, weights);
  }
  return check_vector(context, 2, transposed ? weights[1] * groups : weights[0]);
}

Result<WindowSpec> window_spec(const NodeContext& context) {
  WARPLOOM_TRY(WindowSpec spec, declared_window(context));
  const Shape& in = context.in(0).shape;
  const std::string automatic = auto_pad(context);
  for (size_t i = 0; i < spec.kernel.size(); ++i) {
    const int64_t size = in[i + 2];
    const int64_t stride = spec.strides[i];
    const int64_t reach = (spec.kernel[i] - 1) * spec.dilations[i] + 1;
    int64_t& before = spec.before[i];
    int64_t& after = spec.after[i];
    if (automatic.starts_with("SAME")) {
      const int64_t last = (ceil_div(size, stride) - 1) * stride;  // where the last window begins
      const int64_t total = std::max<int64_t>(last + reach - size, 0);
      before = automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
      after = total - before;
    }
    const int64_t room = size + before + after - reach;
    if (room < 0)
      return context.error(kShape, "a window is larger than what it slides over", in, spec.kernel);
    int64_t made = room / stride + 1;
    spec.counted.push_back(after);
    const bool rounds_up = context.node.integer("ceil_mode") != 0 && room % stride != 0;
    // No window begins beyond the input and what is before it.
    if (rounds_up && made * stride < size + before) {
      ++made;
      after = (made - 1) * stride + reach - size - before;
    }
    spec.size.push_back(made);
  }
  return spec;
}

Result<WindowSpec> transposed_spec(const NodeContext& context) {
  WARPLOOM_TRY(WindowSpec spec, declared_window(context));
  const Shape& in = context.in(0).shape;
  const size_t count = spec.kernel.size();
  const bool asked = context.node.attributes.contains("output_shape");
  const std::string automatic = auto_pad(context);
  const bool same = automatic.starts_with("SAME");
  const bool upper = automatic == "SAME_UPPER";
  WARPLOOM_TRY(const List wanted, spatial(context, "output_shape", count, 1, 1));
  const auto padding = spatial(context, "output_padding", count, 0, 0);
  WARPLOOM_TRY(const List added, padding);
  for (size_t i = 0; i < count; ++i) {
    const int64_t reach = (spec.kernel[i] - 1) * spec.dilations[i];
    const int64_t last_start = (in[i + 2] - 1) * spec.strides[i];
    const int64_t whole = last_start + reach + 1 + added[i];
    int64_t& before = spec.before[i];
    int64_t& after = spec.after[i];
    if (asked || same) {
      const int64_t size = asked ? wanted[i] : in[i + 2] * spec.strides[i];
      const int64_t cut = whole - size;
      const int64_t less = cut / 2;
      before = std::max<int64_t>(upper ? less : cut - less, 0);
      after = cut - before;
    }
    spec.size.push_back(whole - before - after);
    if (spec.size.back() < 1 || in[i + 2] < 1)
      return context.error(kShape, "nothing is left of a transposed convolution",
                           "sizes of 1 or more", spec.size);
    before = reach - before;
    after = reach + added[i] - after;
  }
  return spec;
}

Result<std::vector<int64_t>> reduced_axes(const NodeContext& context) {
  if (context.node.attributes.contains("axis")) {  // ArgMax, ArgMin
    WARPLOOM_TRY(const size_t axis, checked_axis(context));
    return List{as_int64(axis)};
  }
  List wanted = context.node.integers("axes");
  const size_t rank = context.in(0).shape.size();
  if (context.has(1)) {
    if (context.node.attributes.contains("axes"))
      return context.error(kAttribute, "axes are given twice", "an attribute or an input", "both");
    WARPLOOM_TRY(wanted, list(context, 1, "the list of axes"));
  }
  WARPLOOM_TRY(const List over, axes(context, wanted, rank));
  const bool reduces_all = over.empty() && context.node.integer("noop_with_empty_axes") == 0;
  return reduces_all ? span(0, rank) : over;
}

namespace rules {
Result<InferredOutput> reduce(const NodeContext& context) {
  const OpKind op = context.node.op;
  const bool compares = op == OpKind::ReduceMax || op == OpKind::ReduceMin;
  WARPLOOM_CHECK(check_number(context, 0, false, compares));
  WARPLOOM_TRY(const List over, reduced_axes(context));
  InferredOutput output{context.in(0).dtype, {}};
  AxisSources sources(context.in(0).shape.size());
  const bool keeps = context.node.integer("keepdims", 1) != 0;
  for (size_t i = 0; i < sources.size(); ++i) {
    const bool gone = std::ranges::binary_search(over, as_int64(i));
    if (!gone) sources[i].axis = as_int(output.shape.size());
    if (!gone || keeps) output.shape.push_back(gone ? 1 : context.in(0).shape[i]);
  }
  output.reads = {sources};
  return output;
}

// The scanned axis is the one that is read whole.
Result<InferredOutput> cum_sum(const NodeContext& context) {
  WARPLOOM_CHECK(check_number(context, 0));
  AxisSources sources = same_axes(context.in(0).shape.size());
  WARPLOOM_TRY(const List named, list(context, 1, "the axis", 1));
  if (named.empty()) return context.error(kShape, "the axis is missing", "one integer", "none");
  WARPLOOM_TRY(const List axis, axes(context, named, sources.size()));
  sources[axis[0]] = {};
  return InferredOutput{context.in(0).dtype, context.in(0).shape, {sources, std::nullopt}};
}

Result<InferredOutput> pool(const NodeContext& context) {
  WARPLOOM_CHECK(check_number(context, 0, context.node.op != OpKind::MaxPool));
  WARPLOOM_TRY(const WindowSpec spec, window_spec(context));
  InferredOutput output = windows(context, spec, context.in(0).shape[1]);
  (*output.reads[0])[1].axis = 1;
  return output;
}

Result<InferredOutput> conv(const NodeContext& context) {
  WARPLOOM_CHECK(check_weights(context));
  WARPLOOM_TRY(const WindowSpec spec, window_spec(context));
  const Shape& weights = context.in(1).shape;
  InferredOutput output = windows(context, spec, weights[0]);
  const bool by_channel = weights[1] == 1 && weights[0] == context.node.integer("group", 1);
  if (by_channel) (*output.reads[0])[1].axis = 1;
  output.reads.emplace_back(AxisSources(weights.size()));
  (*output.reads[1])[0].axis = 1;
  if (context.has(2)) output.reads.emplace_back(AxisSources{{1}});
  return output;
}
}  // namespace rules
}  // namespace warploom::graph
