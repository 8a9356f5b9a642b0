// The rewriting of what reads images at places that data say.
#include "graph/composite_sampling.h"
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "graph/composite_attention.h"
#include "graph/graph.h"
#include "graph/operators.h"
#include "graph/rules.h"

namespace warploom::graph::rewrites {
namespace {
Interpolation interpolation_of(const std::string& mode) {
  if (mode == "nearest") return Interpolation::nearest;
  return mode.ends_with("cubic") ? Interpolation::cubic : Interpolation::linear;
}

Outside outside_of(const std::string& mode) {
  if (mode == "border") return Outside::border;
  return mode == "reflection" ? Outside::reflection : Outside::zeros;
}

// Numbers to compute places with: floats of 32 bits or more.
Id as_places(PrimitiveWriter& writer, Id x, std::string_view what) {
  const bool wide = writer.dtype(x) == Dtype::f64 || writer.dtype(x) == Dtype::f32;
  return wide ? x : writer.cast(x, Dtype::f32, what);
}

// A grid's number, -1 to 1 across an axis of `size` pixels, as a place in pixels.
Id in_pixels(PrimitiveWriter& writer, Id x, double size, bool corners) {
  const double scale = corners ? (size - 1) / 2 : size / 2;
  const double shift = corners ? scale : (size - 1) / 2;
  const Id scaled = writer.mul(x, writer.scalar(scale, x, "scale"), "scaled");
  return writer.add(scaled, writer.scalar(shift, x, "shift"), "place");
}

// Within the image; a cubic's place in the outer half of a rim's pixel stays what it is, as its
// taps are held there one by one.
Id held(PrimitiveWriter& writer, Id place, double size, const Sampling& of) {
  const Id first = writer.scalar(0, place, "first");
  const Id last = writer.scalar(size - 1, place, "last");
  const Id within = writer.make(OpKind::Clip, {place, first, last}, "held");
  if (of.interpolation != Interpolation::cubic || of.to_centres) return within;
  const Id low = writer.scalar(-0.5, place, "low");
  const Id high = writer.scalar(size - 0.5, place, "high");
  const Id above = writer.make(OpKind::GreaterOrEqual, {place, low}, "above");
  const Id below = writer.make(OpKind::LessOrEqual, {place, high}, "below");
  return writer.where(writer.make(OpKind::And, {above, below}, "inside"), place, within, "place");
}

Status check_grid(const NodeContext& context) {
  const Shape& x = context.in(0).shape;
  const Shape& grid = context.in(1).shape;
  if (!is_wide_float(context.in(1).dtype))
    return type_error(context, "a grid of floats", context.in(1).dtype);
  const bool exact = context.node.text("mode") == "nearest";
  WARPLOOM_CHECK(check_number(context, 0, !exact));
  const bool fits = x.size() >= 3 && grid.size() == x.size() && grid[0] == x[0] &&
                    grid.back() == std::ssize(x) - 2;
  const bool is_empty = std::ranges::count(entries(x, 2), 0) > 0;
  if (fits && !is_empty) return ok();
  const std::string found = fmt::format("{} and {}", to_text(x), to_text(grid));
  return context.error(kShape, "the grid does not fit the image",
                       "[N,C,size..] and [N,grid..,axes]", found);
}
}  // namespace

// X [N,C,size..] at the places of a grid [N,grid..,axes], whose last axis comes first.
Result<Outputs> grid_sample(PrimitiveWriter& writer) {
  WARPLOOM_CHECK(check_grid(writer));
  const Shape x = writer.in(0).shape;
  const Shape grid = writer.in(1).shape;
  const size_t axes = x.size() - 2;
  Sampling of;
  of.interpolation = interpolation_of(writer.node.text("mode"));
  of.outside = outside_of(writer.node.text("padding_mode"));
  of.to_centres = writer.node.integer("align_corners") != 0;
  of.grid = entries(grid, 0, axes + 1);
  const bool exact = of.interpolation == Interpolation::nearest;
  of.x = exact ? writer.raw(0) : writer.wide(0);
  const Id all = as_places(writer, writer.raw(1), "grid");
  Shape lines = {grid[0], 1};
  lines = chained(lines, entries(grid, 1, axes + 1));
  for (size_t a = 0; a < axes; ++a) {
    const auto entry = as_int64(axes - 1 - a);
    const Id own = part_of(writer, all, axes + 1, entry, entry + 1, "entry");
    const auto size = as_double(x[a + 2]);
    Id place = in_pixels(writer, writer.reshape(own, lines, "numbers"), size, of.to_centres);
    if (exact) place = writer.make(OpKind::Round, {place}, "nearest");
    const double rim = of.to_centres ? 0 : -0.5;
    if (of.outside == Outside::reflection)
      place = reflected(writer, place, rim, size - 1 - rim);
    else if (of.outside == Outside::border)
      place = held(writer, place, size, of);
    of.places.push_back(place);
  }
  return Outputs{sampled(writer, of)};
}

// The grid of an affine map: theta [N,axes,axes+1] · (place, 1).
Result<Outputs> affine_grid(PrimitiveWriter& writer) {
  WARPLOOM_CHECK(check_number(writer, 0, true));
  WARPLOOM_TRY(const List size, list(writer, 1, "the size of the grid"));
  const Shape theta = writer.in(0).shape;
  const auto axes = std::ssize(size) - 2;
  const Shape wanted = {size.empty() ? 0 : size[0], axes, axes + 1};
  const bool is_known = axes == 2 || axes == 3;
  if (!is_known || theta != wanted || std::ranges::any_of(size, [](int64_t s) { return s < 1; }))
    return writer.error(kShape, "the map does not fit the grid", wanted, theta);
  const bool corners = writer.node.integer("align_corners") != 0;
  const Shape pixels = entries(size, 2);
  const int64_t count = element_count(pixels);
  const auto place = [&](int64_t i) -> double {
    const int64_t column = i % (axes + 1);
    if (column == axes) return 1;
    const int64_t axis = axes - 1 - column;  // the last axis comes first
    const int64_t stride = element_count(entries(pixels, as_size(axis) + 1));
    const auto at = as_double(i / (axes + 1) / stride % pixels[axis]);
    const auto length = as_double(pixels[axis]);
    if (!corners) return (2 * at + 1) / length - 1;
    return pixels[axis] == 1 ? -1 : 2 * at / (length - 1) - 1;
  };
  const Id map = writer.wide(0);
  const Id points = writer.table(writer.dtype(map), {count, axes + 1}, "points", place);
  const List turned = {0, 2, 1};
  const Id columns = writer.make(OpKind::Transpose, {map}, "columns", {{"perm", turned}});
  const Id flat = writer.make(OpKind::MatMul, {points, columns}, "flat");
  const Shape batch = {size[0]};
  return Outputs{writer.reshape(flat, chained(chained(batch, pixels), {axes}), "grid")};
}

namespace {
Status check_regions(const NodeContext& context) {
  const Shape& x = context.in(0).shape;
  const Shape& rois = context.in(1).shape;
  const Shape& images = context.in(2).shape;
  for (const size_t i : {0, 1})
    WARPLOOM_CHECK(check_number(context, i, true));
  if (is_float(context.in(2).dtype)) return type_error(context, "i64", context.in(2).dtype);
  const bool fits = x.size() == 4 && rois.size() == 2 && rois[1] == 4 && images == Shape{rois[0]};
  if (!fits) {
    const std::string found =
        fmt::format("{}, {} and {}", to_text(x), to_text(rois), to_text(images));
    return context.error(kShape, "regions do not fit the image", "[N,C,H,W], [R,4] and [R]", found);
  }
  for (const std::string_view name : {"output_height", "output_width"})
    if (context.node.integer(name) < 1)
      return context.error(kAttribute, fmt::format("{} has an unfit value", name), "1 or more",
                           context.node.integer(name));
  if (context.node.integer("sampling_ratio") >= 1) return ok();
  return context.error(kAttribute, "how many samples a RoiAlign takes depends on the regions",
                       "sampling_ratio of 1 or more", context.node.integer("sampling_ratio"),
                       "export it with a fixed sampling_ratio");
}

// One axis of the regions: where each sample of each bin lies.
struct RegionAxis {
  size_t low = 0;  // column of the regions
  int64_t bins = 1;
  int64_t ratio = 1;
  double scale = 1;
  double offset = 0;
  double size = 1;  // of the image
};

// Places [R,1,bins·ratio,1] or, of the last axis, [R,1,1,bins·ratio]; and whether they are near the
// image at all.
struct RegionPlaces {
  Id place = kAbsent;
  Id inside = kAbsent;
};

RegionPlaces region_places(PrimitiveWriter& writer, Id rois, const RegionAxis& axis, bool is_last) {
  const int64_t count = writer.shape(rois)[0];
  const auto edge = [&](size_t column, std::string_view what) {
    const auto at = as_int64(column);
    const Id own =
        writer.reshape(part_of(writer, rois, 1, at, at + 1, what), {count, 1, 1, 1}, what);
    const Id scaled = writer.mul(own, writer.scalar(axis.scale, own, "scale"), what);
    if (axis.offset == 0) return scaled;
    return writer.sub(scaled, writer.scalar(axis.offset, own, "offset"), what);
  };
  const Id begin = edge(axis.low, "begin");
  const Id end = edge(axis.low + 2, "end");
  Id length = writer.sub(end, begin, "length");
  if (axis.offset == 0)
    length = writer.make(OpKind::Max, {length, writer.scalar(1, length, "one")}, "at_least_one");
  const int64_t samples = axis.bins * axis.ratio;
  const Shape line = is_last ? Shape{1, 1, 1, samples} : Shape{1, 1, samples, 1};
  const auto part = [&](int64_t i) {
    const double within = (as_double(i % axis.ratio) + 0.5) / as_double(axis.ratio);
    return (as_double(i / axis.ratio) + within) / as_double(axis.bins);
  };
  const Id parts = writer.table(writer.dtype(length), line, "parts", part);
  const Id place = writer.add(begin, writer.mul(length, parts, "within"), "place");
  const auto number = [&](double value) { return writer.scalar(value, place, "number"); };
  const Id above = writer.make(OpKind::GreaterOrEqual, {place, number(-1)}, "above");
  const Id below = writer.make(OpKind::LessOrEqual, {place, number(axis.size)}, "below");
  const Id held = writer.make(OpKind::Clip, {place, number(0), number(axis.size - 1)}, "held");
  return {held, writer.make(OpKind::And, {above, below}, "inside")};
}
}  // namespace

// X [N,C,H,W] in bins of regions [R,4], each the mean, or the largest, of samples.
Result<Outputs> roi_align(PrimitiveWriter& writer) {
  WARPLOOM_CHECK(check_regions(writer));
  const Shape x = writer.in(0).shape;
  const int64_t count = writer.in(1).shape[0];
  const int64_t ratio = writer.node.integer("sampling_ratio");
  const bool half = writer.node.text("coordinate_transformation_mode") == "half_pixel";
  RegionAxis rows;
  rows.low = 1;
  rows.bins = writer.node.integer("output_height");
  rows.ratio = ratio;
  rows.scale = writer.node.real("spatial_scale");
  rows.offset = half ? 0.5 : 0;
  rows.size = as_double(x[2]);
  RegionAxis columns = rows;
  columns.low = 0;
  columns.bins = writer.node.integer("output_width");
  columns.size = as_double(x[3]);
  const Id rois = as_places(writer, writer.raw(1), "rois");
  const RegionPlaces down = region_places(writer, rois, rows, false);
  const RegionPlaces across = region_places(writer, rois, columns, true);
  Sampling of;
  of.x = writer.wide(0);
  of.outside = Outside::border;
  of.grid = {count, rows.bins * ratio, columns.bins * ratio};
  of.places = {down.place, across.place};
  of.image = writer.reshape(writer.raw(2), {count, 1, 1, 1}, "image");
  of.takes_largest = writer.node.text("mode") == "max";
  const Id all = sampled(writer, of);
  const Id inside = writer.make(OpKind::And, {down.inside, across.inside}, "inside");
  const Id kept = writer.where(inside, all, writer.scalar(0, all, "zero"), "kept");
  const Shape apart = {count, x[1], rows.bins, ratio, columns.bins, ratio};
  const Id bins = writer.reshape(kept, apart, "bins");
  const List samples = {3, 5};
  if (of.takes_largest) return Outputs{writer.reduce(OpKind::ReduceMax, bins, samples, "y", 0)};
  return Outputs{writer.mean(bins, samples, "y", 0)};
}

namespace {
struct Deformed {
  WindowSpec spec;
  int64_t groups = 1;   // of weights
  int64_t offsets = 1;  // groups of channels that share offsets
  int64_t taps = 1;
};

Result<Deformed> deformed(PrimitiveWriter& writer) {
  WARPLOOM_CHECK(same_type(writer, true));
  const Shape& x = writer.in(0).shape;
  const Shape& weights = writer.in(1).shape;
  Deformed of;
  of.groups = writer.node.integer("group");
  of.offsets = writer.node.integer("offset_group");
  const bool fits = x.size() >= 3 && weights.size() == x.size() && of.groups > 0 &&
                    of.offsets > 0 && x[1] % of.groups == 0 && x[1] % of.offsets == 0 &&
                    weights[0] % of.groups == 0 && weights[1] == x[1] / of.groups;
  if (!fits) {
    const std::string found = fmt::format("{} and {}", to_text(x), to_text(weights));
    return writer.error(kShape, "the channels of input and weights do not fit",
                        "[N,C,..] and [M,C/group,..]", found);
  }
  WARPLOOM_TRY(of.spec, window_spec(writer));
  of.taps = element_count(of.spec.kernel);
  Shape wanted = {x[0], of.offsets * of.taps * std::ssize(of.spec.kernel)};
  wanted = chained(wanted, of.spec.size);
  if (writer.in(2).shape != wanted)
    return writer.error(kShape, "the offsets do not fit the windows", wanted, writer.in(2).shape);
  wanted[1] = of.offsets * of.taps;
  if (writer.has(4) && writer.in(4).shape != wanted)
    return writer.error(kShape, "the mask does not fit the windows", wanted, writer.in(4).shape);
  WARPLOOM_CHECK(check_vector(writer, 3, weights[0]));
  return of;
}

// Where each tap of each window lies along an axis without offsets, [1,1,taps,windows..].
Id tap_places(PrimitiveWriter& writer, const Deformed& of, size_t axis, Dtype type) {
  const WindowSpec& spec = of.spec;
  Shape shape = {1, 1, of.taps};
  shape = chained(shape, spec.size);
  const int64_t windows = element_count(spec.size);
  const int64_t tap_stride = element_count(entries(spec.kernel, axis + 1));
  const int64_t stride = element_count(entries(spec.size, axis + 1));
  const auto place = [&](int64_t i) {
    const int64_t tap = i / windows / tap_stride % spec.kernel[axis];
    const int64_t window = i % windows / stride % spec.size[axis];
    return window * spec.strides[axis] - spec.before[axis] + tap * spec.dilations[axis];
  };
  return writer.table(type, shape, "taps", place);
}
}  // namespace

// A convolution whose taps are moved by offsets, and weighted by a mask.
Result<Outputs> deform_conv(PrimitiveWriter& writer) {
  WARPLOOM_TRY(const Deformed of, deformed(writer));
  const Shape x = writer.in(0).shape;
  const Shape weights = writer.in(1).shape;
  const size_t axes = of.spec.kernel.size();
  const int64_t lines = x[0] * of.offsets;
  Sampling sampling;
  Shape image = {lines, x[1] / of.offsets};
  sampling.x = writer.reshape(writer.wide(0), chained(image, entries(x, 2)), "images");
  sampling.grid = chained({lines, of.taps}, of.spec.size);
  const Id given = as_places(writer, writer.raw(2), "offsets");
  Shape apart = {lines, of.taps, as_int64(axes)};
  const Id offsets = writer.reshape(given, chained(apart, of.spec.size), "offsets");
  Shape column = {lines, 1, of.taps};
  column = chained(column, of.spec.size);
  for (size_t a = 0; a < axes; ++a) {
    const auto at = as_int64(a);
    const Id own = writer.reshape(part_of(writer, offsets, 2, at, at + 1, "own"), column, "own");
    const Id taps = tap_places(writer, of, a, writer.dtype(own));
    sampling.places.push_back(writer.add(own, taps, "place"));
  }
  Id columns = sampled(writer, sampling);  // [lines, C/offsets, taps, windows..]
  if (writer.has(4)) {
    const Id mask = writer.reshape(writer.wide(4), column, "mask");
    columns = writer.mul(columns, mask, "masked");
  }
  const int64_t windows = element_count(of.spec.size);
  const int64_t depth = weights[1] * of.taps;
  columns = writer.reshape(columns, {x[0], of.groups, depth, windows}, "columns");
  const Shape rows = {of.groups, weights[0] / of.groups, depth};
  const Id kernel = writer.reshape(writer.wide(1), rows, "rows");
  Id y = writer.make(OpKind::MatMul, {kernel, columns}, "product");
  Shape made = {x[0], weights[0]};
  y = writer.reshape(y, chained(made, of.spec.size), "windows");
  if (writer.has(3)) {
    const Id bias = writer.along_channels(writer.wide(3), x.size(), "bias");
    y = writer.add(y, bias, "biased");
  }
  return Outputs{y};
}
}  // namespace warploom::graph::rewrites
