// The rewriting of normalizations.
#include <fmt/format.h>
#include <cstddef>
#include <cstdint>
#include <string>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "graph/composite_pieces.h"
#include "graph/graph.h"
#include "graph/operators.h"
#include "graph/rules.h"

namespace warploom::graph::rewrites {
namespace {
struct Normalized {
  Id y;
  Id mean;
  Id inverse;
};

Normalized normalized(PrimitiveWriter& writer, Id x, const List& axes) {
  const Id mean = writer.mean(x, axes, "mean");
  const Id centered = writer.sub(x, mean, "centered");
  const Id square = writer.mul(centered, centered, "square");
  const Id variance = writer.mean(square, axes, "variance");
  const Id inverse = writer.inverse_root(variance, writer.node.real("epsilon"));
  return {writer.mul(centered, inverse, "normalized"), mean, inverse};
}

Id scaled(PrimitiveWriter& writer, Id y, Id scale, Id bias) {
  if (scale != kAbsent) y = writer.mul(y, scale, "scaled");
  return bias != kAbsent ? writer.add(y, bias, "y") : y;
}

// Layers: statistics over the axes from the attribute's on.
Result<List> normalized_axes(const NodeContext& context) {
  WARPLOOM_CHECK(same_type(context, true));
  WARPLOOM_TRY(const size_t axis, checked_axis(context));
  const Shape line = entries(context.in(0).shape, axis);
  for (size_t i : {1u, 2u}) {
    if (!context.has(i)) continue;
    const Shape& given = context.in(i).shape;
    WARPLOOM_TRY(const Shape stretched, broadcast(line, given, context.place));
    if (stretched == line) continue;
    const char* const message = "scale or bias does not stretch to what is normalised";
    return context.error(kShape, message, line, given);
  }
  return span(axis, axis + line.size());
}

// Batches, instances and groups: scale, bias and statistics by channel, or by group.
Status check_channel_norm(const NodeContext& context, int64_t groups = 0) {
  WARPLOOM_CHECK(check_channels(context));
  const int64_t size = groups > 0 ? groups : context.in(0).shape[1];
  const bool is_f64 = context.in(0).dtype == Dtype::f64;
  for (size_t i = 0; i < context.node.inputs.size(); ++i) {
    const Dtype dtype = context.in(i).dtype;
    if (!is_wide_float(dtype)) return type_error(context, "f64, f32, bf16 or f16", dtype);
    if ((dtype == Dtype::f64) != is_f64)
      return type_error(context, "f64 everywhere or nowhere", "both");
    if (i > 0) WARPLOOM_CHECK(check_vector(context, i, size));
  }
  return ok();
}
}  // namespace

Result<Outputs> layer_norm(PrimitiveWriter& writer) {
  WARPLOOM_TRY(const List axes, normalized_axes(writer));
  const auto [normal, mean, inverse] = normalized(writer, writer.wide(0), axes);
  const Id bias = writer.wide(2);
  const Id scale = writer.wide(1);
  return Outputs{scaled(writer, normal, scale, bias), mean, inverse};
}

Result<Outputs> rms_norm(PrimitiveWriter& writer) {
  WARPLOOM_TRY(const List axes, normalized_axes(writer));
  const Id x = writer.wide(0);
  const Id square = writer.mean(writer.mul(x, x, "square"), axes, "mean");
  const Id scale = writer.wide(1);
  const Id inverse = writer.inverse_root(square, writer.node.real("epsilon"));
  const Id normal = writer.mul(x, inverse, "normalized");
  return Outputs{scaled(writer, normal, scale, kAbsent)};
}

namespace {
struct ChannelStatistics {
  Id mean;
  Id variance;
};

// Of what is normalized, [C] each.
ChannelStatistics statistics_of(PrimitiveWriter& writer, Id x) {
  const size_t rank = writer.rank(x);
  const List others = chained({0}, span(2, rank));
  const Id mean = writer.mean(x, others, "mean", 0);
  const Id centred = writer.sub(x, writer.along_channels(mean, rank, "means"), "centred");
  const Id square = writer.mul(centred, centred, "square");
  return {mean, writer.mean(square, others, "variance", 0)};
}

// A running statistic, input i, after this one.
Id moved_on(PrimitiveWriter& writer, size_t i, Id before, Id now) {
  const double momentum = writer.node.real("momentum");
  const Id old = writer.mul(before, writer.scalar(momentum, before, "kept"), "old");
  const Id fresh = writer.mul(now, writer.scalar(1 - momentum, now, "added"), "fresh");
  return writer.cast(writer.add(old, fresh, "running"), writer.in(i).dtype, "moved_on");
}
}  // namespace

// x·a + b: with constant statistics a and b are constants.
Result<Outputs> batch_norm(PrimitiveWriter& writer) {
  WARPLOOM_CHECK(check_channel_norm(writer));
  const Id x = writer.wide(0);
  const Id scale = writer.wide(1);
  const Id bias = writer.wide(2);
  const bool trains = writer.node.integer("training_mode") != 0;
  const ChannelStatistics given = {writer.wide(3), writer.wide(4)};
  const ChannelStatistics used = trains ? statistics_of(writer, x) : given;
  const auto& [mean, variance] = used;
  const Id inverse = writer.inverse_root(variance, writer.node.real("epsilon"));
  const Id a = writer.mul(scale, inverse, "a");
  const Id b = writer.sub(bias, writer.mul(mean, a, "mean_a"), "b");
  const size_t rank = writer.rank(x);
  const Id b_channels = writer.along_channels(b, rank, "b_channels");
  const Id a_channels = writer.along_channels(a, rank, "a_channels");
  const Id y = scaled(writer, x, a_channels, b_channels);
  if (!trains) return Outputs{y};
  return Outputs{y, moved_on(writer, 3, given.mean, mean),
                 moved_on(writer, 4, given.variance, variance)};
}

// By groups of channels; an instance's are of one channel each.
Result<Outputs> group_norm(PrimitiveWriter& writer) {
  WARPLOOM_CHECK(check_channels(writer));
  const Shape shape = writer.in(0).shape;
  const bool instance = writer.node.op == OpKind::InstanceNormalization;
  const int64_t groups = instance ? shape[1] : writer.node.integer("num_groups");
  if (!instance && (groups < 1 || shape[1] % groups != 0)) {
    const std::string expected = fmt::format("a divisor of {}", shape[1]);
    return writer.error(kAttribute, "num_groups does not divide the channels", expected, groups);
  }
  const bool by_group = writer.in(1).shape == Shape{groups};  // opset 18 scales whole groups
  WARPLOOM_CHECK(check_channel_norm(writer, by_group ? groups : 0));
  const int64_t lines = shape[0] * groups;
  const int64_t line = lines == 0 ? 0 : element_count(shape) / lines;
  Id y = writer.wide(0);
  if (groups != shape[1]) y = writer.reshape(y, {shape[0], groups, line}, "groups");
  y = normalized(writer, y, span(2, writer.rank(y))).y;
  if (!by_group) y = writer.reshape(y, shape, "channels");
  const size_t rank = writer.rank(y);
  const Id bias = writer.along_channels(writer.wide(2), rank, "bias");
  const Id scale = writer.along_channels(writer.wide(1), rank, "scale");
  return Outputs{writer.reshape(scaled(writer, y, scale, bias), shape, "y")};
}

// The standard deviation, not the variance, is kept from 0.
Result<Outputs> mean_variance(PrimitiveWriter& writer) {
  WARPLOOM_CHECK(same_type(writer, true));
  const size_t rank = writer.rank(writer.raw(0));
  WARPLOOM_TRY(const List over, axes(writer, writer.node.integers("axes"), rank));
  const Id x = writer.wide(0);
  const Id centered = writer.sub(x, writer.mean(x, over, "mean"), "centered");
  const Id square = writer.mul(centered, centered, "square");
  const Id variance = writer.mean(square, over, "variance");
  const Id deviation = writer.make(OpKind::Sqrt, {variance}, "deviation");
  const Id kept = writer.add(deviation, writer.scalar(1e-9, x, "epsilon"), "kept");
  return Outputs{writer.make(OpKind::Div, {centered, kept}, "y")};
}

// x / (bias + alpha/size · sum of the squares of `size` channels around its own)^beta
Result<Outputs> lrn(PrimitiveWriter& writer) {
  WARPLOOM_CHECK(same_type(writer, true));
  WARPLOOM_CHECK(check_channels(writer));
  const int64_t size = writer.node.integer("size");
  if (size < 1) return writer.error(kAttribute, "LRN lacks its size", "1 or more", size);
  const Id x = writer.wide(0);
  const Shape whole = writer.shape(x);
  const int64_t pixels = element_count(entries(whole, 2));
  const Shape lines = {whole[0], 1, whole[1], pixels};
  WindowSpec spec;
  spec.kernel = {size, 1};
  spec.strides = {1, 1};
  spec.dilations = {1, 1};
  spec.before = {(size - 1) / 2, 0};
  spec.after = {size / 2, 0};
  const Id square = writer.mul(x, x, "square");
  const Id squares = writer.reshape(square, lines, "lines");
  const Id sum = windowed(writer, OpKind::SumPool, {squares}, spec);
  const double alpha = writer.node.real("alpha") / as_double(size);
  const Id bias = writer.scalar(writer.node.real("bias"), x, "bias");
  const Id factor = writer.scalar(alpha, x, "alpha");
  const Id share = writer.mul(writer.reshape(sum, whole, "sum"), factor, "share");
  const Id base = writer.add(share, bias, "base");
  const Id beta = writer.scalar(writer.node.real("beta"), x, "beta");
  const Id power = writer.make(OpKind::Pow, {base, beta}, "power");
  return Outputs{writer.make(OpKind::Div, {x, power}, "y")};
}

// A norm of 0 divides by 1: nothing stays nothing.
Result<Outputs> lp_norm(PrimitiveWriter& writer) {
  WARPLOOM_CHECK(same_type(writer, true));
  WARPLOOM_CHECK(check_power(writer));
  WARPLOOM_TRY(const size_t at, checked_axis(writer));
  const Id x = writer.wide(0);
  const Id norm = rooted(writer, x, [&](Id power) {
    return writer.reduce(OpKind::ReduceSum, power, span(at, at + 1), "sum");
  });
  const Id zero = writer.scalar(0, x, "zero");
  const Id none = writer.make(OpKind::Equal, {norm, zero}, "none");
  const Id one = writer.scalar(1, x, "one");
  const Id divisor = writer.where(none, one, norm, "divisor");
  return Outputs{writer.make(OpKind::Div, {x, divisor}, "y")};
}
}  // namespace warploom::graph::rewrites
