// The rewriting of what takes images apart, puts them together, cuts them, and of determinants.
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "graph/composite_attention.h"
#include "graph/composite_pieces.h"
#include "graph/graph.h"
#include "graph/operators.h"
#include "graph/rules.h"

namespace warploom::graph::rewrites {
namespace {
constexpr int64_t kMostTaps = 256;  // each is written out

// The place of tap `flat` of a window along each axis.
List tap_at(const List& kernel, int64_t flat) {
  List at(kernel.size());
  for (size_t d = kernel.size(); d-- > 0; flat /= kernel[d])
    at[d] = flat % kernel[d];
  return at;
}

// The number of a window's elements.
Result<int64_t> checked_taps(const NodeContext& context, const List& kernel) {
  WARPLOOM_TRY(const int64_t taps, checked_element_count(kernel, context.place));
  if (taps < 1)
    return context.error(kShape, "a window has no elements", "1 or more along each axis", kernel);
  if (taps <= kMostTaps) return taps;
  return context.error(ErrorCode::kOnnxTooLarge, "a window has too many elements to be written out",
                       fmt::format("at most {}", kMostTaps), taps);
}

// Of each window the element of one tap: [N,C,windows..].
Id tap_of(PrimitiveWriter& writer, Id padded, const WindowSpec& spec, const List& at) {
  List starts;
  List ends;
  for (size_t d = 0; d < at.size(); ++d) {
    starts.push_back(at[d] * spec.dilations[d]);
    ends.push_back(starts[d] + (spec.size[d] - 1) * spec.strides[d] + 1);
  }
  const Id from = writer.list(starts, "starts");
  const Id to = writer.list(ends, "ends");
  const Id on = writer.list(span(2, 2 + at.size()), "axes");
  const Id by = writer.list(spec.strides, "steps");
  return writer.make(OpKind::Slice, {padded, from, to, on, by}, "tap");
}

// The flat place in x that a tap of each window reads: the plane's start, and along each axis its
// place times what one step there is.
struct FlatPlaces {
  const Shape& x;
  const WindowSpec& spec;
  bool columns_first = false;  // the first spatial axis is the one of neighbours

  int64_t step(size_t d) const {
    const Shape spatial = entries(x, 2);
    if (columns_first) return element_count(entries(spatial, 0, d));
    return element_count(entries(spatial, d + 1));
  }

  int64_t window(int64_t flat) const {
    int64_t place = 0;
    for (size_t d = spec.size.size(); d-- > 0; flat /= spec.size[d])
      place += (flat % spec.size[d] * spec.strides[d] - spec.before[d]) * step(d);
    return place;
  }

  int64_t tap(const List& at) const {
    int64_t place = 0;
    for (size_t d = 0; d < at.size(); ++d)
      place += at[d] * spec.dilations[d] * step(d);
    return place;
  }

  // Whether a tap of each window lies in the image, not in its pads.
  bool always_inside(const List& at) const {
    for (size_t d = 0; d < at.size(); ++d) {
      const int64_t first = at[d] * spec.dilations[d] - spec.before[d];
      const int64_t last = first + (spec.size[d] - 1) * spec.strides[d];
      if (first < 0 || last >= x[d + 2]) return false;
    }
    return true;
  }

  bool inside(int64_t flat, const List& at) const {
    for (size_t d = at.size(); d-- > 0; flat /= spec.size[d]) {
      const int64_t start = flat % spec.size[d] * spec.strides[d] - spec.before[d];
      const int64_t place = start + at[d] * spec.dilations[d];
      if (place < 0 || place >= x[d + 2]) return false;
    }
    return true;
  }

  // Of the first tap of a window that lies in the image; 0 where none does.
  int64_t first_inside(int64_t flat) const {
    const int64_t taps = element_count(spec.kernel);
    for (int64_t t = 0; t < taps; ++t) {
      const List at = tap_at(spec.kernel, t);
      if (inside(flat, at)) return window(flat) + tap(at);
    }
    return 0;
  }
};
}  // namespace

// The largest of each window, and its flat place in the input; of equal ones the first.
Result<Outputs> max_pool_places(PrimitiveWriter& writer) {
  WARPLOOM_CHECK(check_number(writer, 0));
  WARPLOOM_TRY(const WindowSpec spec, window_spec(writer));
  const Shape x = writer.in(0).shape;
  WARPLOOM_TRY(const int64_t taps, checked_taps(writer, spec.kernel));
  const Id best = windowed(writer, OpKind::MaxPool, {writer.raw(0)}, spec);
  const double infinity = std::numeric_limits<double>::infinity();
  const Id least = writer.scalar(rounded(writer.in(0).dtype, -infinity), best, "least");
  const List before = chained({0, 0}, spec.before);
  const List after = chained({0, 0}, spec.after);
  const Id padded = writer.pad(writer.raw(0), before, after, least, "padded");
  const FlatPlaces flat{x, spec, writer.node.integer("storage_order") != 0};
  const Shape windows = chained({1, 1}, spec.size);
  const auto own = [&](int64_t i) { return flat.window(i); };
  const auto start = [&](int64_t i) { return i * element_count(entries(x, 2)); };
  const Shape planes = chained({x[0], x[1]}, Shape(spec.size.size(), 1));
  const Id first = writer.table(Dtype::i64, windows, "window_start", own);
  const Id plane = writer.table(Dtype::i64, planes, "plane_start", start);
  const Id base = writer.add(first, plane, "start");
  const auto inside_first = [&](int64_t i) { return flat.first_inside(i); };
  Id place = kAbsent;
  for (int64_t t = taps; t-- > 0;) {
    const List at = tap_at(spec.kernel, t);
    const Id offset = writer.scalar(as_double(flat.tap(at)), base, "offset");
    const Id here = writer.add(base, offset, "here");
    const bool always = flat.always_inside(at);
    if (place == kAbsent && always) {
      place = here;
      continue;
    }
    if (place == kAbsent)
      place = writer.add(writer.table(Dtype::i64, windows, "first", inside_first), plane, "first");
    const Id value = tap_of(writer, padded, spec, at);
    Id hit = writer.make(OpKind::Equal, {value, best}, "hit");
    if (!always) {
      const auto lies = [&](int64_t i) { return flat.inside(i, at) ? 1 : 0; };
      const Id inside = writer.table(Dtype::boolean, windows, "inside", lies);
      hit = writer.make(OpKind::And, {hit, inside}, "hit_inside");
    }
    place = writer.where(hit, here, place, "place");
  }
  const Id all = writer.list(writer.shape(best), "shape");
  return Outputs{best, writer.make(OpKind::Expand, {place, all}, "places")};
}

namespace {
// How blocks lie in an image.
Result<WindowSpec> block_spec(const NodeContext& context, const List& image, const List& block) {
  const size_t axes = image.size();
  WindowSpec spec;
  spec.kernel = block;
  const auto listed = [&](std::string_view name, size_t count, int64_t otherwise) {
    const List given = context.node.integers(name);
    return given.empty() ? List(count, otherwise) : given;
  };
  spec.strides = listed("strides", axes, 1);
  spec.dilations = listed("dilations", axes, 1);
  const List pads = listed("pads", 2 * axes, 0);
  const bool counted = block.size() == axes && spec.strides.size() == axes &&
                       spec.dilations.size() == axes && pads.size() == 2 * axes;
  const auto error = [&] {
    return context.error(kShape, "blocks do not fit the image", image, block);
  };
  if (!counted || axes == 0) return error();
  // Below this, sums of a few and a window's taps times one of them fit in 64 bits.
  const auto is_small = [](int64_t n) { return n >= -kMaxElements && n <= kMaxElements; };
  for (const List& given : {image, block, spec.strides, spec.dilations, pads})
    if (!std::ranges::all_of(given, is_small)) return error();
  for (size_t d = 0; d < axes; ++d) {
    spec.before.push_back(pads[d]);
    spec.after.push_back(pads[axes + d]);
    if (image[d] < 0 || block[d] < 1 || spec.strides[d] < 1 || spec.dilations[d] < 1)
      return error();
    const int64_t reach = (block[d] - 1) * spec.dilations[d] + 1;
    const int64_t room = image[d] + pads[d] + pads[axes + d] - reach;
    if (room < 0) return error();
    spec.size.push_back(room / spec.strides[d] + 1);
  }
  return spec;
}

// Elements of one tap of every block, [N,C,blocks..], where they belong in an image with its pads.
Id spread(PrimitiveWriter& writer, Id x, const WindowSpec& spec, const List& image, const List& at,
          Id zero) {
  const size_t axes = image.size();
  const Shape given = writer.shape(x);
  Shape apart = entries(given, 0, 2);
  List between(2, 0);
  for (size_t d = 0; d < axes; ++d) {
    apart.push_back(spec.size[d]);
    apart.push_back(1);
    between.push_back(0);
    between.push_back(spec.strides[d] - 1);
  }
  Id y = writer.reshape(x, apart, "apart");
  y = writer.pad(y, List(apart.size(), 0), between, zero, "between");
  Shape laid = entries(given, 0, 2);
  List before(2, 0);
  List behind(2, 0);
  for (size_t d = 0; d < axes; ++d) {
    laid.push_back(spec.size[d] * spec.strides[d]);
    before.push_back(at[d] * spec.dilations[d] - spec.before[d]);
    behind.push_back(image[d] - laid.back() - before.back());
  }
  y = writer.reshape(y, laid, "laid");
  return writer.pad(y, before, behind, zero, "spread");
}
}  // namespace

// Blocks [N,C·block,blocks] added where they overlap: [N,C,image..].
Result<Outputs> col2im(PrimitiveWriter& writer) {
  WARPLOOM_CHECK(check_number(writer, 0));
  WARPLOOM_TRY(const List image, list(writer, 1, "the image's shape"));
  WARPLOOM_TRY(const List block, list(writer, 2, "the block's shape"));
  WARPLOOM_TRY(const int64_t taps, checked_taps(writer, block));
  WARPLOOM_TRY(const WindowSpec spec, block_spec(writer, image, block));
  WARPLOOM_CHECK(checked_element_count(image, writer.place));
  WARPLOOM_TRY(const int64_t blocks, checked_element_count(spec.size, writer.place));
  const Shape x = writer.in(0).shape;
  const bool fits = x.size() == 3 && x[1] % taps == 0 && x[2] == blocks;
  if (!fits)
    return writer.error(kShape, "columns do not fit the image",
                        fmt::format("[N,C·{},{}]", taps, blocks), x);
  const Id wide = writer.wide(0);
  const int64_t channels = x[1] / taps;
  const Shape apart = chained({x[0], channels, taps}, spec.size);
  const Id columns = writer.reshape(wide, apart, "columns");
  const Id zero = writer.scalar(0, wide, "zero");
  const Shape one = chained({x[0], channels}, spec.size);
  Id sum = kAbsent;
  for (int64_t t = 0; t < taps; ++t) {
    const Id own = writer.reshape(part_of(writer, columns, 2, t, t + 1, "tap"), one, "tap");
    const Id laid = spread(writer, own, spec, image, tap_at(block, t), zero);
    sum = sum == kAbsent ? laid : writer.add(sum, laid, "sum");
  }
  return Outputs{sum};
}

// The middle of each axis, or the axis in the middle of zeros.
Result<Outputs> center_crop_pad(PrimitiveWriter& writer) {
  WARPLOOM_TRY(const List wanted, list(writer, 1, "the shape"));
  const Shape x = writer.in(0).shape;
  const bool has_axes = writer.node.attributes.contains("axes");
  const List named = has_axes ? writer.node.integers("axes") : span(0, x.size());
  WARPLOOM_CHECK(axes(writer, named, x.size()));
  if (named.size() != wanted.size())
    return writer.error(kShape, "the shape does not fit the axes",
                        fmt::format("{} entries", named.size()), wanted);
  List before(x.size(), 0);
  List behind(x.size(), 0);
  for (size_t i = 0; i < named.size(); ++i) {
    const auto axis = as_size(*normalized_axis(named[i], x.size(), writer.place));
    if (wanted[i] < 0) return writer.error(kShape, "a size is negative", "0 or more", wanted);
    const int64_t more = wanted[i] - x[axis];
    before[axis] = more / 2;
    behind[axis] = more - before[axis];
  }
  const Id zero = writer.scalar(0, writer.raw(0), "zero");
  return Outputs{writer.pad(writer.raw(0), before, behind, zero, "y")};
}

namespace {
// The determinant of the rows from `row` on and these columns, along the first one.
Id minor_of(PrimitiveWriter& writer, const std::vector<std::vector<Id>>& entries, size_t row,
            const std::vector<size_t>& columns) {
  if (columns.size() == 1) return entries[row][columns[0]];
  Id sum = kAbsent;
  for (size_t i = 0; i < columns.size(); ++i) {
    std::vector<size_t> others = columns;
    others.erase(others.begin() + as_int(i));
    const Id below = minor_of(writer, entries, row + 1, others);
    const Id product = writer.mul(entries[row][columns[i]], below, "product");
    if (sum == kAbsent)
      sum = product;
    else
      sum = writer.make(i % 2 == 0 ? OpKind::Add : OpKind::Sub, {sum, product}, "sum");
  }
  return sum;
}
}  // namespace

// Of small matrices, written out.
Result<Outputs> determinant(PrimitiveWriter& writer) {
  constexpr int64_t kMost = 4;
  WARPLOOM_CHECK(check_number(writer, 0, true));
  const Shape x = writer.in(0).shape;
  const size_t rank = x.size();
  const bool square = rank >= 2 && x[rank - 1] == x[rank - 2];
  if (!square || x[rank - 1] < 1 || x[rank - 1] > kMost)
    return writer.error(kShape, "the determinant of such a matrix is not supported",
                        fmt::format("[..,n,n] with n up to {}", kMost), x);
  const int64_t n = x[rank - 1];
  const Id all = writer.wide(0);
  const Shape batch = entries(x, 0, rank - 2);
  std::vector<std::vector<Id>> values(as_size(n));
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) {
      const Id row = part_of(writer, all, rank - 2, i, i + 1, "row");
      const Id one = part_of(writer, row, rank - 1, j, j + 1, "entry");
      values[i].push_back(writer.reshape(one, batch, "entry"));
    }
  std::vector<size_t> columns;
  for (size_t j = 0; j < as_size(n); ++j)
    columns.push_back(j);
  return Outputs{minor_of(writer, values, 0, columns)};
}
}  // namespace warploom::graph::rewrites
