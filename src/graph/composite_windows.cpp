// The rewriting of pools and convolutions.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "graph/composite_pieces.h"
#include "graph/graph.h"
#include "graph/operators.h"
#include "graph/rules.h"

namespace warploom::graph {
Status check_power(const NodeContext& context) {
  const int64_t p = context.node.integer("p", 2);
  const bool normalizes = context.node.op == OpKind::LpNormalization;
  const int64_t most = normalizes ? 2 : 64;
  if (p >= 1 && p <= most) return ok();
  const char* const expected = normalizes ? "1 or 2" : "1 to 64";
  return context.error(kAttribute, "the norm's p is not supported", expected, p);
}

Status check_channels(const NodeContext& context) {
  const Shape& shape = context.in(0).shape;
  if (shape.size() >= 2) return ok();
  return context.error(kShape, "an input lacks its channels", "2 axes or more", shape);
}

Id windowed(PrimitiveWriter& writer, OpKind op, std::vector<Id> inputs, const WindowSpec& spec) {
  std::map<std::string, Attribute> attributes;
  attributes["kernel_shape"] = spec.kernel;
  attributes["strides"] = spec.strides;
  attributes["dilations"] = spec.dilations;
  attributes["pads"] = chained(spec.before, spec.after);
  if (op == OpKind::Conv) attributes["group"] = writer.node.integer("group", 1);
  return writer.make(op, std::move(inputs), "windows", std::move(attributes));
}

Id rooted(PrimitiveWriter& writer, Id x, const std::function<Id(Id)>& sum) {
  const auto p = as_double(writer.node.integer("p"));
  const Id size = writer.make(OpKind::Abs, {x}, "abs");
  if (p == 1) return sum(size);
  const Id exponent = writer.scalar(p, x, "p");
  const Id power = sum(writer.make(OpKind::Pow, {size, exponent}, "power"));
  const Id root = writer.scalar(1 / p, x, "root");
  return writer.make(OpKind::Pow, {power, root}, "y");
}

namespace rewrites {
namespace {
// Exporters write zeros of another shape for no bias. Zeros of a bias's own shape are added: the
// kernels may be given other weights, in which they are not 0.
Id biased(PrimitiveWriter& writer, Id y) {
  if (!writer.has(2)) return y;
  const Id bias = writer.raw(2);
  const bool is_own_shape = writer.shape(bias) == Shape{writer.shape(y)[1]};
  if (is_zero(writer.graph.tensor(bias)) && !is_own_shape) return y;
  const Id channels = writer.along_channels(bias, writer.rank(y), "bias");
  return writer.add(y, channels, "y");
}

// Elements of [low, high) that the window at `place` along axis i reads.
int64_t counted_taps(const WindowSpec& spec, size_t i, int64_t place, int64_t low, int64_t high) {
  // Taps t with low <= first + t·dilation < high.
  const int64_t first = place * spec.strides[i] - spec.before[i];
  const int64_t step = spec.dilations[i];
  const int64_t steps_to_low = (low - first + step - 1) / step;
  const int64_t steps_to_high = (high - first + step - 1) / step;
  const int64_t begin = std::max<int64_t>(0, steps_to_low);
  const int64_t end = std::min(spec.kernel[i], steps_to_high);
  return std::max<int64_t>(end - begin, 0);
}

// 1 over how many elements each window counts: a scalar where all count the same, else of the
// output's spatial shape.
Id shares(PrimitiveWriter& writer, Id like, const WindowSpec& spec, bool with_pads) {
  const size_t axes = writer.dry() ? 0 : spec.kernel.size();
  std::vector<std::vector<double>> counts(axes);  // along each axis
  bool alike = true;
  for (size_t i = 0; i < counts.size(); ++i) {
    const int64_t size = writer.shape(like)[i + 2];
    const int64_t low = with_pads ? -spec.before[i] : 0;
    const int64_t high = with_pads ? size + spec.counted[i] : size;
    for (int64_t place = 0; place < spec.size[i]; ++place) {
      const int64_t taps = counted_taps(spec, i, place, low, high);
      counts[i].push_back(as_double(taps));
      alike = alike && counts[i].back() == counts[i].front();
    }
  }
  const auto share = [&](int64_t flat) {
    double count = 1;
    for (size_t i = counts.size(); i-- > 0; flat /= spec.size[i])
      count *= counts[i][flat % spec.size[i]];
    return 1 / std::max(count, 1.0);
  };
  if (alike) return writer.table(writer.dtype(like), {}, "share", share);
  const Shape over_images = chained({1, 1}, spec.size);
  return writer.table(writer.dtype(like), over_images, "shares", share);
}
}  // namespace

// Pools and convolutions.
Result<Outputs> windows(PrimitiveWriter& writer) {
  WARPLOOM_CHECK(check_power(writer));
  WARPLOOM_TRY(const WindowSpec spec, window_spec(writer));
  const OpKind op = writer.node.op;
  if (op == OpKind::Conv) {
    const std::vector<Id> operands = {writer.raw(0), writer.raw(1)};
    const Id y = windowed(writer, op, operands, spec);
    return Outputs{biased(writer, y)};
  }
  if (op == OpKind::MaxPool) return Outputs{windowed(writer, op, {writer.raw(0)}, spec)};
  const Id x = writer.wide(0);
  const auto sum = [&](Id of) { return windowed(writer, OpKind::SumPool, {of}, spec); };
  if (op == OpKind::LpPool) return Outputs{rooted(writer, x, sum)};
  const bool with_pads = writer.node.integer("count_include_pad") != 0;
  const Id share = shares(writer, x, spec, with_pads);
  return Outputs{writer.mul(sum(x), share, "y")};
}

Result<Outputs> global_pool(PrimitiveWriter& writer) {
  WARPLOOM_CHECK(same_type(writer, true));
  WARPLOOM_CHECK(check_channels(writer));
  WARPLOOM_CHECK(check_power(writer));
  const Id x = writer.wide(0);
  const List axes = span(2, writer.rank(x));
  const OpKind op = writer.node.op;
  if (op == OpKind::GlobalAveragePool) return Outputs{writer.mean(x, axes, "y")};
  if (op == OpKind::GlobalMaxPool) return Outputs{writer.reduce(OpKind::ReduceMax, x, axes, "y")};
  const auto sum = [&](Id power) { return writer.reduce(OpKind::ReduceSum, power, axes, "sum"); };
  return Outputs{rooted(writer, x, sum)};
}

namespace {
// One spatial axis of a ConvTranspose of stride s as a convolution of stride 1 that makes s phases.
struct PhasedAxis {
  int64_t stride = 1;
  int64_t kernel = 1;    // weights as they are given
  int64_t dilation = 1;  // zeros are put between them; 1 where the convolution itself dilates
  int64_t taps = 1;      // weights of a phase
  int64_t lead = 0;      // zeros before the weights, and behind them, up to taps · stride
  int64_t behind = 0;
  int64_t before = 0;  // pads of the convolution; less than 0 crops
  int64_t after = 0;
  int64_t places = 0;  // outputs of a phase
  int64_t size = 0;    // of the whole output
  int64_t first = 0;   // pads of the phases laid between one another; less than 0 crops

  int64_t last() const { return size - places * stride - first; }
};

// `in`: elements of the input along the axis.
PhasedAxis phased_axis(const WindowSpec& spec, size_t i, int64_t in) {
  PhasedAxis axis;
  axis.stride = spec.strides[i];
  axis.kernel = spec.kernel[i];
  axis.size = spec.size[i];
  axis.before = spec.before[i];
  axis.after = spec.after[i];
  axis.places = axis.size;
  const int64_t stride = axis.stride;
  if (stride > 1) axis.dilation = spec.dilations[i];
  const int64_t reach = (axis.kernel - 1) * axis.dilation;  // from the first weight to the last
  axis.taps = ceil_div(reach + 1, stride);
  int64_t cut = reach - axis.before;  // what the whole output has before this one
  // With zeros before them, where there is room, no phase of the first place is cut.
  axis.lead = round_up(cut, stride) - cut;
  if (reach + 1 + axis.lead > axis.taps * stride) axis.lead = 0;
  axis.behind = axis.taps * stride - axis.kernel * axis.dilation - axis.lead;
  if (stride == 1) return axis;
  cut += axis.lead;
  axis.places = ceil_div(cut + axis.size, stride) - cut / stride;
  axis.before = axis.taps - 1 - cut / stride;
  axis.after = axis.places + axis.taps - 1 - axis.before - in;
  axis.first = -(cut % stride);
  return axis;
}

// A list of one entry an axis behind `front`.
template <class Entry>
List listed_by(List front, const std::vector<PhasedAxis>& axes, Entry entry) {
  for (const PhasedAxis& axis : axes)
    front.push_back(std::invoke(entry, axis));
  return front;
}

// The weights of all phases as output channels, turned: [groups·M·phases, C/groups, taps..].
Id phased_weights(PrimitiveWriter& writer, const std::vector<PhasedAxis>& axes, Id zero) {
  const size_t count = axes.size();
  const Shape given = writer.shape(writer.raw(1));
  const int64_t groups = writer.node.integer("group", 1);
  const Shape front = {given[0], given[1]};
  const auto dilated_size = [](const PhasedAxis& axis) { return axis.kernel * axis.dilation; };
  const Shape dilated = listed_by(front, axes, dilated_size);
  Id weights = writer.raw(1);
  if (dilated != given) {
    Shape apart = front;
    List between(2, 0);
    for (const PhasedAxis& axis : axes) {
      apart.insert(apart.end(), {axis.kernel, 1});
      between.insert(between.end(), {0, axis.dilation - 1});
    }
    weights = writer.reshape(weights, apart, "apart");
    weights = writer.pad(weights, List(apart.size(), 0), between, zero, "spread");
  }
  const List lead = listed_by(List(2, 0), axes, &PhasedAxis::lead);
  const List behind = listed_by(List(2, 0), axes, &PhasedAxis::behind);
  weights = writer.reshape(weights, dilated, "dilated");
  weights = writer.pad(weights, lead, behind, zero, "whole");
  // [groups, C/groups, M, (taps, stride)..] becomes [groups, M, stride.., C/groups, taps..].
  Shape phased = {groups, given[0] / groups, given[1]};
  List order = {0, 2};
  int64_t phases = 1;
  for (size_t i = 0; i < count; ++i) {
    phased.push_back(axes[i].taps);
    phased.push_back(axes[i].stride);
    order.push_back(as_int64(4 + 2 * i));
    phases *= axes[i].stride;
  }
  order.push_back(1);
  for (size_t i = 0; i < count; ++i)
    order.push_back(as_int64(3 + 2 * i));
  weights = writer.reshape(weights, phased, "taps");
  weights = writer.make(OpKind::Transpose, {weights}, "phases", {{"perm", order}});
  const Shape channels = {groups * given[1] * phases, given[0] / groups};
  const Shape turned = listed_by(channels, axes, &PhasedAxis::taps);
  weights = writer.reshape(weights, turned, "turned");
  const List back(count, -1);
  const List beyond(count, std::numeric_limits<int64_t>::min());
  const Id starts = writer.list(back, "starts");
  const Id ends = writer.list(beyond, "ends");
  const Id spatial = writer.list(span(2, 2 + count), "axes");
  const Id steps = writer.list(back, "steps");
  return writer.make(OpKind::Slice, {weights, starts, ends, spatial, steps}, "backwards");
}

// Lays phases that are channels, [N, channels·phases, places..], between one another.
Id interleaved(PrimitiveWriter& writer, Id y, const Shape& front,
               const std::vector<PhasedAxis>& axes, Id zero) {
  const size_t count = axes.size();
  Shape stacked = listed_by(front, axes, &PhasedAxis::stride);
  stacked = listed_by(stacked, axes, &PhasedAxis::places);
  List exchanged = {0, 1};
  for (size_t i = 0; i < count; ++i) {
    exchanged.push_back(as_int64(2 + count + i));
    exchanged.push_back(as_int64(2 + i));
  }
  const auto laid_size = [](const PhasedAxis& axis) { return axis.places * axis.stride; };
  const Shape laid = listed_by(front, axes, laid_size);
  const List first = listed_by(List(2, 0), axes, &PhasedAxis::first);
  const List last = listed_by(List(2, 0), axes, &PhasedAxis::last);
  y = writer.reshape(y, stacked, "stacked");
  y = writer.make(OpKind::Transpose, {y}, "exchanged", {{"perm", exchanged}});
  return writer.pad(writer.reshape(y, laid, "laid"), first, last, zero, "whole");
}
}  // namespace

// Outputs whose places are the same modulo the stride s, a phase, see every s-th weight alone. One
// convolution with turned weights makes all phases as channels, which are then laid between one
// another. The weights w are padded by zeros to a whole number of strides:
//
//   y[s q + r] = sum over t of x[q - t] w[s t + r]
Result<Outputs> conv_transpose(PrimitiveWriter& writer) {
  WARPLOOM_CHECK(check_weights(writer));
  WARPLOOM_TRY(WindowSpec spec, transposed_spec(writer));
  const size_t count = spec.kernel.size();
  const Shape in = writer.shape(writer.raw(0));
  const int64_t groups = writer.node.integer("group", 1);
  const int64_t out_channels = groups * writer.shape(writer.raw(1))[1];
  const Id zero = writer.scalar(0, writer.raw(0), "zero");
  std::vector<PhasedAxis> axes;
  for (size_t i = 0; i < count; ++i)
    axes.push_back(phased_axis(spec, i, in[i + 2]));
  bool has_phases = false;
  List crop(2, 0);
  List crop_behind(2, 0);
  for (size_t i = 0; i < count; ++i) {
    const PhasedAxis& axis = axes[i];
    if (axis.stride > 1) spec.dilations[i] = 1;
    has_phases = has_phases || axis.stride > 1;
    crop.push_back(std::min<int64_t>(axis.before, 0));
    crop_behind.push_back(std::min<int64_t>(axis.after, 0));
    spec.strides[i] = 1;
    spec.kernel[i] = axis.taps;
    spec.before[i] = std::max<int64_t>(axis.before, 0);
    spec.after[i] = std::max<int64_t>(axis.after, 0);
  }
  const Id weights = phased_weights(writer, axes, zero);
  const Id x = writer.pad(writer.raw(0), crop, crop_behind, zero, "cropped");
  Id y = windowed(writer, OpKind::Conv, {x, weights}, spec);
  if (has_phases) y = interleaved(writer, y, {in[0], out_channels}, axes, zero);
  return Outputs{biased(writer, y)};
}
}  // namespace rewrites
}  // namespace warploom::graph
