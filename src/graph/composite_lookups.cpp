// The rewriting of what takes elements where data say.
#include "graph/composite_lookups.h"
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "graph/graph.h"
#include "graph/operators.h"
#include "graph/rules.h"

namespace warploom::graph {
void Places::add_own(size_t d, size_t of) {
  const Shape line = with(Shape(shape.size(), 1), of, shape[of]);
  add(d, writer.table(type, line, "coordinate", [](int64_t i) { return i; }), false);
}

void Places::add(size_t d, Id index, bool from_end) {
  if (index == kAbsent) return add_own(d, d);
  const int64_t stride = element_count(entries(writer.shape(x), d + 1, axes));
  if (from_end) index = from_front(index, writer.shape(x)[d]);
  if (stride != 1) {
    const Id factor = writer.scalar(as_double(stride), index, "stride");
    index = writer.mul(index, factor, "step");
  }
  flat = flat == kAbsent ? index : writer.add(flat, index, "flat");
}

// An index of an axis of `size` elements, counted from the front.
Id Places::from_front(Id index, int64_t size) {
  const Id zero = writer.scalar(0, index, "zero");
  const Id below = writer.make(OpKind::Less, {index, zero}, "below");
  const Id length = writer.scalar(as_double(size), index, "size");
  const Id counted = writer.add(index, length, "counted");
  const std::map<std::string, Attribute> attributes = {{"index_size", size}};
  return writer.make(OpKind::Where, {below, counted, index}, "front", attributes);
}

Id Places::taken() {
  if (flat == kAbsent) flat = writer.table(type, {}, "first", [](int64_t) { return 0; });
  const Shape lines_shape = chained({count}, entries(writer.shape(x), axes));
  const Id lines = writer.reshape(x, lines_shape, "lines");
  const Id places = writer.cast(flat, Dtype::i64, "places");
  const Id to = writer.list(shape, "shape");
  flat = writer.make(OpKind::Expand, {places, to}, "all");
  return writer.make(OpKind::Gather, {lines, flat}, "y", {{"axis", int64_t{0}}});
}

Id taken_along(PrimitiveWriter& writer, Id x, size_t axis, Id index, const Shape& shape) {
  Places places{writer, x, axis + 1, entries(shape, 0, axis + 1)};
  const Shape given = writer.shape(index);
  const size_t rank = shape.size();
  // Axes behind the one in question are lines, where the index does not vary along them.
  const auto varies = [&](size_t d) {
    const size_t skipped = rank - given.size();
    return d >= skipped && given[d - skipped] != 1;
  };
  size_t last = axis;
  for (size_t d = axis + 1; d < rank; ++d)
    if (varies(d)) last = d;
  places.axes = last + 1;
  places.shape = entries(shape, 0, last + 1);
  places.count = element_count(entries(writer.shape(x), 0, last + 1));
  places.type = places.count <= 1 << 24 ? Dtype::f32 : Dtype::i64;
  Shape whole(rank - given.size(), 1);
  whole = chained(whole, given);
  Id by = writer.reshape(index, entries(whole, 0, last + 1), "index_lines");
  by = writer.cast(by, places.type, "index");
  for (size_t d = 0; d <= last; ++d)
    if (d == axis)
      places.add(d, by, false);
    else
      places.add(d);
  return places.taken();
}

namespace rewrites {
// y[i, j] = x[i, index[i, j]] along the last of two axes.
Result<Outputs> gather_elements(PrimitiveWriter& writer) {
  WARPLOOM_CHECK(check_indices(writer));
  WARPLOOM_TRY(const size_t axis, checked_axis(writer));
  const Shape x = writer.in(0).shape;
  const Shape to = writer.in(1).shape;
  bool fits = x.size() == to.size();
  for (size_t d = 0; fits && d < x.size(); ++d)
    fits = d == axis || to[d] <= x[d];
  if (!fits) return writer.error(kShape, "indices lie beyond what they are taken from", x, to);
  Places places{writer, writer.raw(0), x.size(), to};
  for (size_t d = 0; d < x.size(); ++d)
    places.add(d, d == axis ? writer.cast(writer.raw(1), places.type, "index") : kAbsent);
  return Outputs{places.taken()};
}

// y[b, i] = x[b, index[b, i, 0], index[b, i, 1], ..]: as many axes of x as the last axis of the
// indices is long.
Result<Outputs> gather_nd(PrimitiveWriter& writer) {
  WARPLOOM_CHECK(check_indices(writer));
  const Shape x = writer.in(0).shape;
  const Shape given = writer.in(1).shape;
  const int64_t batches = writer.node.integer("batch_dims");
  const auto fits = [&] {
    if (given.empty() || batches < 0 || batches >= std::ssize(given)) return false;
    if (batches + given.back() > std::ssize(x)) return false;
    return std::equal(x.begin(), x.begin() + batches, given.begin());
  };
  if (!fits()) return writer.error(kShape, "indices do not fit what they are taken from", x, given);
  const Shape to(given.begin(), given.end() - 1);
  const size_t first = as_size(batches);
  const size_t axes = first + as_size(given.back());
  Places places{writer, writer.raw(0), axes, to};
  const Id all = writer.cast(writer.raw(1), places.type, "indices");
  const List on = span(to.size(), to.size() + 1);
  for (size_t d = 0; d < axes; ++d) {
    const auto j = as_int64(d) - batches;
    if (j < 0) {
      places.add(d);
      continue;
    }
    const Id begin = writer.list({j}, "from");
    const Id end = writer.list({j + 1}, "to");
    const Id axis = writer.list(on, "axis");
    const Id part = writer.make(OpKind::Slice, {all, begin, end, axis}, "part");
    places.add(d, writer.reshape(part, to, "index"));
  }
  return Outputs{places.taken()};
}
}  // namespace rewrites
}  // namespace warploom::graph
