// The rewriting of what writes elements where data say. There is no primitive that writes so: each
// element of the result looks for the updates that are meant for it.
//
//   y[p] = the last of the updates whose index is p, or data[p] where there is none
//
// Where the model knows the indices that is a Gather by a table; else every place is compared with
// every index.
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "graph/composite_attention.h"
#include "graph/composite_lookups.h"
#include "graph/graph.h"
#include "graph/operators.h"
#include "graph/rules.h"

namespace warploom::graph::rewrites {
namespace {
// How updates and what is there become one.
struct Combining {
  OpKind reduce = OpKind::ReduceSum;
  OpKind apply = OpKind::Add;
  double identity = 0;
};

double end_of(Dtype dtype, bool upper) {
  const double infinity = std::numeric_limits<double>::infinity();
  return rounded(dtype, upper ? infinity : -infinity);
}

// Nothing where the updates take the place of what is there.
std::optional<Combining> combining(const NodeContext& context) {
  using enum OpKind;
  const std::string name = context.node.attribute<std::string>("reduction", "none");
  const Dtype dtype = context.in(0).dtype;
  if (name == "add") return Combining{ReduceSum, Add, 0};
  if (name == "mul") return Combining{ReduceProd, Mul, 1};
  if (name == "max") return Combining{ReduceMax, Max, end_of(dtype, false)};
  if (name == "min") return Combining{ReduceMin, Min, end_of(dtype, true)};
  return std::nullopt;
}

Status check_scatter(const NodeContext& context) {
  WARPLOOM_CHECK(check_indices(context));
  const Dtype data = context.in(0).dtype;
  const Dtype updates = context.in(2).dtype;
  if (data != updates) return type_error(context, data, updates);
  if (combining(context)) return check_number(context, 0);
  return ok();
}

// Indices that may count from the end, as whole numbers from the front of an axis.
Id from_front(PrimitiveWriter& writer, Id index, int64_t size) {
  const Id whole = writer.cast(index, Dtype::i64, "whole");
  const Id zero = writer.scalar(0, whole, "zero");
  const Id length = writer.scalar(as_double(size), whole, "size");
  const Id below = writer.make(OpKind::Less, {whole, zero}, "below");
  return writer.where(below, writer.add(whole, length, "from_end"), whole, "front");
}

// The last hit along an axis: its number, -1 where there is none.
Id last_hit(PrimitiveWriter& writer, Id hit, size_t axis) {
  const Shape shape = writer.shape(hit);
  const Shape line = with(Shape(shape.size(), 1), axis, shape[axis]);
  const Id number = writer.places(line, "number");
  const Id none = writer.constant(Dtype::i64, {}, {-1}, "none");
  const Id numbers = writer.where(hit, number, none, "numbers");
  return writer.reduce(OpKind::ReduceMax, numbers, {as_int64(axis)}, "last", 0);
}

Id wide_of(PrimitiveWriter& writer, Id x, std::string_view what) {
  const bool narrow = is_float(writer.dtype(x)) && bits_of(writer.dtype(x)) == 16;
  return narrow ? writer.cast(x, Dtype::f32, what) : x;
}

// data with what the hits choose of the updates along an axis, where both stretch to the hits.
Id combined(PrimitiveWriter& writer, const Combining& how, Id data, Id hit, Id updates,
            size_t axis) {
  const Dtype type = writer.dtype(data);
  const Id wide = wide_of(writer, updates, "wide_updates");
  const Id identity = writer.scalar(how.identity, wide, "identity");
  const Id chosen = writer.where(hit, wide, identity, "chosen");
  const Id all = writer.reduce(how.reduce, chosen, {as_int64(axis)}, "all_updates", 0);
  const Id there = wide_of(writer, data, "wide_data");
  const Id flat = writer.reshape(all, writer.shape(there), "updates");
  return writer.cast(writer.make(how.apply, {there, flat}, "scattered"), type, "y");
}

// Indices and updates of data's shape but along the axis: what is not there writes nowhere.
struct Lined {
  Id index = kAbsent;
  Id updates = kAbsent;
};

Lined lined(PrimitiveWriter& writer, Id data, size_t axis, Id index, Id updates) {
  const Shape whole = writer.shape(data);
  const Shape given = writer.shape(index);
  List behind(whole.size(), 0);
  for (size_t d = 0; d < whole.size(); ++d)
    if (d != axis) behind[d] = whole[d] - given[d];
  const List none(whole.size(), 0);
  const Id nowhere = writer.scalar(-1, index, "nowhere");
  const Id zero = writer.scalar(0, updates, "zero");
  return {writer.pad(index, none, behind, nowhere, "indices"),
          writer.pad(updates, none, behind, zero, "updates")};
}
}  // namespace

// y[i][index[i][j]] = updates[i][j] along the last of two axes.
Result<Outputs> scatter_elements(PrimitiveWriter& writer) {
  WARPLOOM_CHECK(check_scatter(writer));
  WARPLOOM_TRY(const size_t axis, checked_axis(writer));
  const Shape data = writer.in(0).shape;
  const Shape given = writer.in(1).shape;
  bool fits = data.size() == given.size() && given == writer.in(2).shape;
  for (size_t d = 0; fits && d < data.size(); ++d)
    fits = d == axis || given[d] <= data[d];
  if (!fits)
    return writer.error(kShape, "indices and updates do not fit what is written to", data, given);
  if (element_count(given) == 0) return Outputs{writer.raw(0)};
  const Id front = from_front(writer, writer.raw(1), data[axis]);
  const Lined of = lined(writer, writer.raw(0), axis, front, writer.raw(2));
  // [.., places, numbers, ..]
  const auto apart = [&](Id x, std::string_view what) {
    Shape shape = writer.shape(x);
    shape.insert(shape.begin() + as_int(axis), 1);
    return writer.reshape(x, shape, what);
  };
  const Shape column = with(Shape(data.size() + 1, 1), axis, data[axis]);
  const Id place = writer.places(column, "place");
  const Id index = apart(of.index, "numbers");
  const Id hit = writer.make(OpKind::Equal, {index, place}, "hit");
  if (const auto how = combining(writer)) {
    const Id updates = apart(of.updates, "values");
    return Outputs{combined(writer, *how, writer.raw(0), hit, updates, axis + 1)};
  }
  const Id last = last_hit(writer, hit, axis + 1);
  const Id zero = writer.scalar(0, last, "zero");
  const Id number = writer.make(OpKind::Max, {last, zero}, "number");
  const Id taken = taken_along(writer, of.updates, axis, number, data);
  const Id is_written = writer.make(OpKind::GreaterOrEqual, {last, zero}, "is_written");
  return Outputs{writer.where(is_written, taken, writer.raw(0), "y")};
}

namespace {
// A ScatterND as lines: data [places, inner], indices [numbers], updates [numbers, inner].
struct Lines {
  int64_t places = 1;
  int64_t numbers = 1;
  int64_t inner = 1;
  size_t axes = 0;  // that an index has entries for
};

Result<Lines> lines_of(const NodeContext& context) {
  const Shape& data = context.in(0).shape;
  const Shape& indices = context.in(1).shape;
  const Shape& updates = context.in(2).shape;
  Lines of;
  const bool has_entries = !indices.empty() && indices.back() <= std::ssize(data);
  if (has_entries) {
    of.axes = as_size(indices.back());
    const Shape batch = entries(indices, 0, indices.size() - 1);
    const Shape inner = entries(data, of.axes);
    of.places = element_count(entries(data, 0, of.axes));
    of.numbers = element_count(batch);
    of.inner = element_count(inner);
    if (updates == chained(batch, inner)) return of;
  }
  const std::string found = fmt::format("{} and {}", to_text(indices), to_text(updates));
  return context.error(kShape, "indices and updates do not fit what is written to", data, found);
}

// Which number is written last to each place by indices that the model knows, -1: none; nothing
// where they are not known or lie outside, or where a table of so many places is wasted on few.
std::optional<List> known_numbers(const NodeContext& context, const Lines& of, bool unique) {
  constexpr int64_t kFewPlaces = 1 << 20;
  if (of.places > kFewPlaces && of.numbers * 8 <= of.places) return std::nullopt;
  const auto known = constant_integers(context.graph, context.node.inputs[1]);
  if (!known) return std::nullopt;
  const Shape& data = context.in(0).shape;
  List last(of.places, -1);
  for (int64_t n = 0; n < of.numbers; ++n) {
    int64_t flat = 0;
    for (size_t d = 0; d < of.axes; ++d) {
      int64_t index = (*known)[as_size(n) * of.axes + d];
      if (index < 0) index += data[d];
      if (index < 0 || index >= data[d]) return std::nullopt;
      flat = flat * data[d] + index;
    }
    if (unique && last[flat] >= 0) return std::nullopt;
    last[flat] = n;
  }
  return last;
}

// The flat place of each index, [numbers].
Id flat_places(PrimitiveWriter& writer, const Lines& of) {
  const Shape data = writer.in(0).shape;
  const Id rows = writer.reshape(writer.raw(1), {of.numbers, as_int64(of.axes)}, "rows");
  Id flat = kAbsent;
  for (size_t d = 0; d < of.axes; ++d) {
    const auto at = as_int64(d);
    const Id own =
        writer.reshape(part_of(writer, rows, 1, at, at + 1, "entry"), {of.numbers}, "entry");
    Id index = from_front(writer, own, data[d]);
    const int64_t stride = element_count(entries(data, d + 1, of.axes));
    if (stride != 1)
      index = writer.mul(index, writer.scalar(as_double(stride), index, "stride"), "step");
    flat = flat == kAbsent ? index : writer.add(flat, index, "flat");
  }
  if (flat == kAbsent)
    flat = writer.table(Dtype::i64, {of.numbers}, "flat", [](int64_t) { return 0; });
  return flat;
}

// By a table of numbers: data [places,inner] and updates [numbers,inner].
Id written_by_table(PrimitiveWriter& writer, const List& last, Id data, Id updates,
                    const std::optional<Combining>& how) {
  const int64_t places = std::ssize(last);
  const int64_t first = 0;
  const auto number = [&](int64_t p) { return std::max<int64_t>(last[p], 0); };
  const Id numbers = writer.table(Dtype::i64, {places}, "numbers", number);
  const Id taken = writer.make(OpKind::Gather, {updates, numbers}, "taken", {{"axis", first}});
  const bool all = std::ranges::none_of(last, [](int64_t n) { return n < 0; });
  if (all && !how) return taken;
  const auto is_hit = [&](int64_t p) { return last[p] >= 0 ? 1 : 0; };
  const Id hit = writer.table(Dtype::boolean, {places, 1}, "is_written", is_hit);
  if (!how) return writer.where(hit, taken, data, "y");
  const Dtype type = writer.dtype(data);
  const Id wide = wide_of(writer, taken, "wide_updates");
  const Id identity = writer.scalar(how->identity, wide, "identity");
  const Id chosen = writer.where(hit, wide, identity, "chosen");
  const Id there = wide_of(writer, data, "wide_data");
  return writer.cast(writer.make(how->apply, {there, chosen}, "scattered"), type, "y");
}
}  // namespace

// y[index[i]..] = updates[i..], for as many axes as an index has entries.
Result<Outputs> scatter_nd(PrimitiveWriter& writer) {
  WARPLOOM_CHECK(check_scatter(writer));
  WARPLOOM_TRY(const Lines of, lines_of(writer));
  const Shape whole = writer.in(0).shape;
  const auto how = combining(writer);
  const Id data = writer.reshape(writer.raw(0), {of.places, of.inner}, "lines");
  const Id updates = writer.reshape(writer.raw(2), {of.numbers, of.inner}, "updates");
  if (of.numbers == 0) return Outputs{writer.raw(0)};
  if (const auto last = known_numbers(writer, of, how.has_value())) {
    const Id y = written_by_table(writer, *last, data, updates, how);
    return Outputs{writer.reshape(y, whole, "y")};
  }
  const Id flat = flat_places(writer, of);
  const Id place = writer.places({of.places, 1}, "place");
  const Id hit = writer.make(OpKind::Equal, {place, flat}, "hit");  // [places, numbers]
  Id y = kAbsent;
  if (how) {
    const Id each = writer.reshape(hit, {of.places, of.numbers, 1}, "hits");
    y = combined(writer, *how, data, each, updates, 1);
  } else if (of.numbers == 1) {
    y = writer.where(hit, updates, data, "y");
  } else {
    const Id last = last_hit(writer, hit, 1);
    const Id zero = writer.scalar(0, last, "zero");
    const Id number = writer.make(OpKind::Max, {last, zero}, "number");
    const int64_t first = 0;
    const Id taken = writer.make(OpKind::Gather, {updates, number}, "taken", {{"axis", first}});
    const Id is_hit = writer.make(OpKind::GreaterOrEqual, {last, zero}, "is_hit");
    const Id is_written = writer.reshape(is_hit, {of.places, 1}, "is_written");
    y = writer.where(is_written, taken, data, "y");
  }
  return Outputs{writer.reshape(y, whole, "y")};
}

// A cache [B,..,L,..] with updates [B,..,S,..] from a place of each batch on.
Result<Outputs> tensor_scatter(PrimitiveWriter& writer) {
  const Shape past = writer.in(0).shape;
  const Shape given = writer.in(1).shape;
  WARPLOOM_TRY(const size_t axis, checked_axis(writer));
  if (writer.in(1).dtype != writer.in(0).dtype)
    return type_error(writer, writer.in(0).dtype, writer.in(1).dtype);
  const bool same_rank = given.size() == past.size() && axis > 0;
  if (!same_rank || with(given, axis, past[axis]) != past || given[axis] > past[axis])
    return writer.error(kShape, "what is written does not fit the cache", past, given);
  const Shape column = with(Shape(past.size(), 1), axis, past[axis]);
  Id off = writer.places(column, "place");
  if (writer.has(2)) {
    if (writer.in(2).dtype != Dtype::i64) return type_error(writer, "i64", writer.in(2).dtype);
    WARPLOOM_CHECK(check_vector(writer, 2, past[0]));
    const Shape by_batch = with(Shape(past.size(), 1), 0, past[0]);
    off = writer.sub(off, writer.reshape(writer.raw(2), by_batch, "starts"), "off");
  }
  if (writer.node.text("mode") == "circular") {
    const Id length = writer.scalar(as_double(past[axis]), off, "length");
    off = writer.make(OpKind::Mod, {off, length}, "round");
  }
  const Id first = writer.scalar(0, off, "first");
  const Id last = writer.scalar(as_double(given[axis] - 1), off, "last");
  const Id behind = writer.make(OpKind::GreaterOrEqual, {off, first}, "behind");
  const Id within = writer.make(OpKind::LessOrEqual, {off, last}, "within");
  const Id is_new = writer.make(OpKind::And, {behind, within}, "is_new");
  if (given[axis] == 0) return Outputs{writer.raw(0)};
  Id laid = writer.raw(1);
  if (given[axis] > 1) {
    const Id index = writer.make(OpKind::Clip, {off, first, last}, "index");
    laid = taken_along(writer, laid, axis, index, past);
  }
  return Outputs{writer.where(is_new, laid, writer.raw(0), "present")};
}

// Each element of X at its flat place in the larger result, zeros elsewhere.
Result<Outputs> max_unpool(PrimitiveWriter& writer) {
  WARPLOOM_CHECK(check_number(writer, 0));
  WARPLOOM_CHECK(check_indices(writer));
  const Shape x = writer.in(0).shape;
  if (x != writer.in(1).shape || x.size() < 3)
    return writer.error(kShape, "places do not fit what is put there", x, writer.in(1).shape);
  const size_t spatial = x.size() - 2;
  const List kernel = writer.node.integers("kernel_shape");
  List strides = writer.node.integers("strides");
  List pads = writer.node.integers("pads");
  if (strides.empty()) strides.assign(spatial, 1);
  if (pads.empty()) pads.assign(2 * spatial, 0);
  if (kernel.size() != spatial || strides.size() != spatial || pads.size() != 2 * spatial)
    return writer.error(kAttribute, "kernel_shape, strides and pads do not fit the spatial axes",
                        fmt::format("{} entries", spatial), kernel);
  Shape pooled = {x[0], x[1]};
  for (size_t d = 0; d < spatial; ++d) {
    const int64_t between = (x[d + 2] - 1) * strides[d] + kernel[d];
    pooled.push_back(between - pads[d] - pads[spatial + d]);
  }
  Shape whole = pooled;
  if (writer.has(2)) {
    WARPLOOM_TRY(whole, list(writer, 2, "the output's shape"));
  }
  bool fits = whole.size() == x.size() && whole[0] == x[0] && whole[1] == x[1];
  for (size_t d = 0; fits && d < whole.size(); ++d)
    fits = pooled[d] >= 1 && whole[d] >= pooled[d];
  if (!fits) return writer.error(kShape, "the output's shape does not fit", pooled, whole);
  const int64_t planes = x[0] * x[1];
  const int64_t pixels = element_count(entries(pooled, 2));
  const int64_t given = element_count(entries(x, 2));
  const auto start = [&](int64_t plane) { return plane * pixels; };
  const Id first = writer.table(Dtype::i64, {planes, 1}, "plane_start", start);
  const Id flat =
      writer.cast(writer.reshape(writer.raw(1), {planes, given}, "flat"), Dtype::i64, "flat");
  const Id local = writer.sub(flat, first, "local");
  const Id column = writer.places({1, pixels, 1}, "pixel");
  const Id wanted = writer.reshape(local, {planes, 1, given}, "wanted");
  const Id hit = writer.make(OpKind::Equal, {wanted, column}, "hit");
  const Id values = writer.reshape(writer.raw(0), {planes, 1, given}, "values");
  const Id zero = writer.scalar(0, values, "zero");
  // Of several for one place the last.
  const Id last = last_hit(writer, hit, 2);
  const Id none = writer.scalar(0, last, "none");
  const Id number = writer.make(OpKind::Max, {last, none}, "number");
  const Id lines = writer.reshape(values, {planes, given}, "lines");
  const Id taken = taken_along(writer, lines, 1, number, {planes, pixels});
  const Id is_hit = writer.make(OpKind::GreaterOrEqual, {last, none}, "is_hit");
  Id y = writer.where(is_hit, taken, zero, "put");
  y = writer.reshape(y, pooled, "unpooled");
  List behind;
  for (size_t d = 0; d < whole.size(); ++d)
    behind.push_back(whole[d] - pooled[d]);
  return Outputs{writer.pad(y, List(whole.size(), 0), behind, zero, "y")};
}
}  // namespace warploom::graph::rewrites
