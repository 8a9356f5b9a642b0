// The rewriting of Resize: interpolation, one axis after another. An output is a sum of inputs at
// known places, each times a known weight.
#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "graph/graph.h"
#include "graph/operators.h"
#include "graph/rules.h"

namespace warploom::graph::rewrites {
namespace {
constexpr int kMostTaps = 256;

// One axis of `size` elements, resized to `length`.
struct Along {
  std::string mode;
  std::string transformation;
  std::string nearest;
  double cubic = 0;       // the coefficient a of Keys' cubic (IEEE Trans. ASSP 29, 1981)
  bool excludes = false;  // places outside the axis get no weight
  bool widens = false;    // shrinking, an output sees all inputs that it stands for
  double begin = 0;       // of tf_crop_and_resize: the part of the axis that is looked at, 0 to 1
  double end = 1;
  double size = 0;
  double scale = 1;
  int64_t length = 0;

  // Inputs on one side of a place.
  double reach() const {
    const double own = mode == "linear" ? 1 : 2;
    return widens && scale < 1 ? own / scale : own;
  }

  double before() const { return -std::floor(-reach()) - 1; }

  int taps() const {
    if (mode == "nearest") return 1;
    return as_int(2 * before()) + 2;
  }

  double place(int64_t to) const {  // of an output, in the input
    const auto at = as_double(to);
    const auto all = as_double(length);
    if (transformation == "asymmetric") return at / scale;
    if (transformation == "tf_half_pixel_for_nn") return (at + 0.5) / scale;
    if (transformation == "tf_crop_and_resize") {
      if (length == 1) return (begin + end) * (size - 1) / 2;
      return begin * (size - 1) + at * (end - begin) * (size - 1) / (all - 1);
    }
    if (transformation == "align_corners")
      return length == 1 ? 0 : at * (size - 1) / (size * scale - 1);
    if (transformation == "pytorch_half_pixel" && length == 1) return 0;
    const double middle = (at + 0.5) / scale - 0.5;
    if (transformation != "half_pixel_symmetric") return middle;
    return middle + size / 2 * (1 - all / (size * scale));
  }

  double tap(int64_t to, int t) const {  // its t-th input, which may lie outside
    const double at = place(to);
    if (taps() > 1) return std::floor(at) + t - before();
    if (nearest == "floor") return std::floor(at);
    if (nearest == "ceil") return std::ceil(at);
    return nearest == "round_prefer_floor" ? std::ceil(at - 0.5) : std::floor(at + 0.5);
  }

  bool is_outside(int64_t to) const {
    if (transformation != "tf_crop_and_resize") return false;
    return place(to) < 0 || place(to) > size - 1;
  }

  double from(int64_t to, int t) const { return std::clamp(tap(to, t), 0.0, size - 1); }

  double weight(int64_t to, int t) const {
    double all = 0;
    for (int other = 0; other < taps(); ++other)
      all += share(to, other);
    return share(to, t) / all;
  }

 private:
  double share(int64_t to, int t) const {
    const double at = tap(to, t);
    const double shrunk = widens ? std::min(scale, 1.0) : 1;
    const double off = std::fabs(place(to) - at) * shrunk;
    const double a = cubic;
    if (excludes && (at < 0 || at >= size)) return 0;
    if (mode == "linear") return std::max(1 - off, 0.0);
    if (off <= 1) return ((a + 2) * off - (a + 3)) * off * off + 1;
    if (off >= 2) return 0;
    return ((a * off - 5 * a) * off + 8 * a) * off - 4 * a;
  }
};

Along along_of(const Node& node) {
  Along along;
  along.mode = node.text("mode");
  along.transformation = node.text("coordinate_transformation_mode");
  along.nearest = node.text("nearest_mode");
  along.cubic = node.real("cubic_coeff_a");
  along.excludes = node.integer("exclude_outside") != 0;
  along.widens = node.integer("antialias") != 0;
  return along;
}

// What a Resize says of each of its axes.
struct Wanted {
  List axes;
  std::vector<double> scales;
  std::vector<double> lengths;
  std::vector<double> begins;  // of tf_crop_and_resize
  std::vector<double> ends;
};

// The one scale that keeps proportions: the smallest of those wanted, or the largest.
void keep_proportions(const NodeContext& context, const Shape& shape, Wanted& wanted) {
  const std::string policy = context.node.text("keep_aspect_ratio_policy");
  if (policy == "stretch" || wanted.axes.empty()) return;
  const bool smallest = policy == "not_larger";
  const double scale = smallest ? std::ranges::min(wanted.scales) : std::ranges::max(wanted.scales);
  for (size_t i = 0; i < wanted.axes.size(); ++i) {
    wanted.scales[i] = scale;
    wanted.lengths[i] = std::floor(scale * as_double(shape[wanted.axes[i]]) + 0.5);
  }
}

// Numbers of an input that the model knows.
Result<std::vector<double>> known_numbers(const NodeContext& context, size_t i, size_t count,
                                          std::string_view what) {
  const Tensor& given = context.in(i);
  if (!given.constant) {
    const std::string message = fmt::format("{} of a Resize is not known from the model", what);
    return context.error(ErrorCode::kOnnxDynamicShape, message, "constant scales or sizes", given,
                         "export the model with fixed shapes");
  }
  if (given.shape != Shape{as_int64(count)}) {
    const std::string message = fmt::format("{} of a Resize does not fit the axes", what);
    return context.error(kShape, message, Shape{as_int64(count)}, given.shape);
  }
  std::vector<double> numbers;
  for (size_t n = 0; n < count; ++n)
    numbers.push_back(load_as_double(given.dtype, given.constant->data(), n));
  return numbers;
}

Result<Wanted> wanted_of(const NodeContext& context) {
  const Shape& shape = context.in(0).shape;
  const bool has_axes = context.node.attributes.contains("axes");
  Wanted wanted;
  wanted.axes = has_axes ? context.node.integers("axes") : span(0, shape.size());
  WARPLOOM_CHECK(axes(context, wanted.axes, shape.size()));
  for (int64_t& axis : wanted.axes)  // in the order of the scales
    axis = *normalized_axis(axis, shape.size(), context.place);
  const auto given = [&](size_t i) {
    return context.has(i) && element_count(context.in(i).shape) > 0;
  };
  const bool sized = given(3);
  if (given(2) == sized)
    return context.error(kShape, "a Resize by scales or by sizes", "one of the two",
                         sized ? "both" : "none");
  const size_t count = wanted.axes.size();
  WARPLOOM_TRY(const auto numbers, known_numbers(context, sized ? 3 : 2, count, "a size"));
  for (size_t i = 0; i < count; ++i) {
    const auto size = as_double(shape[wanted.axes[i]]);
    wanted.scales.push_back(sized ? numbers[i] / size : numbers[i]);
    wanted.lengths.push_back(sized ? numbers[i] : std::floor(size * numbers[i]));
  }
  if (sized) keep_proportions(context, shape, wanted);
  if (context.node.text("coordinate_transformation_mode") != "tf_crop_and_resize") return wanted;
  if (!given(1))
    return context.error(ErrorCode::kOnnxName, "a Resize of a region lacks it", "input 1",
                         "nothing");
  WARPLOOM_TRY(const auto region, known_numbers(context, 1, 2 * count, "a region"));
  const auto half = region.begin() + as_int64(count);
  wanted.begins.assign(region.begin(), half);
  wanted.ends.assign(half, region.end());
  return wanted;
}

// x resized along one axis, of which the result has `along.length` elements.
Id resized(PrimitiveWriter& writer, Id x, const Along& along, size_t axis, size_t rank) {
  std::map<std::string, Attribute> on_axis;
  on_axis["axis"] = as_int64(axis);
  const Shape column = with(Shape(rank, 1), axis, along.length);
  Id sum = kAbsent;
  for (int t = 0; t < along.taps(); ++t) {
    const auto place = [&](int64_t to) { return along.from(to, t); };
    const Id from = writer.table(Dtype::i64, {along.length}, "from", place);
    Id part = writer.make(OpKind::Gather, {x, from}, "taken", on_axis);
    if (along.taps() > 1) {
      const auto weight = [&](int64_t to) { return along.weight(to, t); };
      const Id weights = writer.table(writer.dtype(x), column, "weight", weight);
      part = writer.mul(part, weights, "part");
    }
    sum = sum == kAbsent ? part : writer.add(sum, part, "sum");
  }
  return sum;
}
}  // namespace

Result<Outputs> resize(PrimitiveWriter& writer) {
  WARPLOOM_TRY(const Wanted wanted, wanted_of(writer));
  Along along = along_of(writer.node);
  Shape shape = writer.in(0).shape;
  const bool exact = along.mode == "nearest";
  if (!exact && !is_wide_float(writer.in(0).dtype))
    return type_error(writer, "f64, f32, bf16 or f16 between places", writer.in(0).dtype);
  Id x = exact ? writer.raw(0) : writer.wide(0);
  std::vector<Id> inside;  // of each axis, where a region goes beyond it
  for (size_t i = 0; i < wanted.axes.size(); ++i) {
    const auto axis = as_size(wanted.axes[i]);
    along.size = as_double(shape[axis]);
    along.scale = wanted.scales[i];
    const double length = wanted.lengths[i];
    const bool fits = length >= 1 && length <= as_double(kMaxElements);
    if (!fits || !(along.size > 0)) {
      const std::string expected = "an axis of 1 or more, to 1 or more";
      const std::string found = fmt::format("{} to {}", along.size, length);
      return writer.error(kShape, "an axis cannot be resized so", expected, found);
    }
    const bool of_region = !wanted.begins.empty();
    if (of_region) {
      along.begin = wanted.begins[i];
      along.end = wanted.ends[i];
    }
    along.length = as_int64(length);
    const bool whole = !of_region || (along.begin == 0 && along.end == 1);
    if (along.length == shape[axis] && along.scale == 1 && whole) continue;
    if (along.taps() > kMostTaps)
      return writer.error(ErrorCode::kOnnxTooLarge, "a Resize shrinks by too much at once",
                          fmt::format("at most {} elements into one", kMostTaps), along.taps(),
                          "shrink in steps");
    shape[axis] = along.length;
    x = resized(writer, x, along, axis, shape.size());
    if (!of_region) continue;
    const Shape column = with(Shape(shape.size(), 1), axis, along.length);
    const auto is_inside = [&](int64_t to) { return along.is_outside(to) ? 0 : 1; };
    inside.push_back(writer.table(Dtype::boolean, column, "inside", is_inside));
  }
  const Id beyond = writer.scalar(writer.node.real("extrapolation_value"), x, "beyond");
  for (const Id own : inside)
    x = writer.where(own, x, beyond, "extrapolated");
  return Outputs{x};
}
}  // namespace warploom::graph::rewrites
