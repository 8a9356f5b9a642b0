// The rewriting of what orders, picks or turns round elements of a line.
#include <fmt/format.h>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>
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
// Few of a long line are picked one after another, each in two passes; else every element is
// compared with every other.
constexpr int64_t kMostPicked = 32;
constexpr int64_t kShortLine = 1024;
constexpr int64_t kFew = 8;
constexpr int64_t kShortForFew = 256;

struct Top {
  Id x = kAbsent;
  size_t axis = 0;
  int64_t size = 0;  // of a line
  int64_t k = 0;
  bool largest = true;

  OpKind better() const { return largest ? OpKind::Greater : OpKind::Less; }

  OpKind best() const { return largest ? OpKind::ReduceMax : OpKind::ReduceMin; }

  double worst(Dtype dtype) const {
    const double infinity = std::numeric_limits<double>::infinity();
    return rounded(dtype, largest ? -infinity : infinity);
  }
};

struct Picked {
  Id values = kAbsent;
  Id places = kAbsent;
};

// x with an axis of 1 before or behind the line's.
Id with_axis(PrimitiveWriter& writer, Id x, size_t at, std::string_view what) {
  Shape shape = writer.shape(x);
  shape.insert(shape.begin() + as_int(at), 1);
  return writer.reshape(x, shape, what);
}

// Whether `a` comes before `b`: a NaN counts as larger than all else.
Id comes_before(PrimitiveWriter& writer, const Top& of, Id a, Id b) {
  const Id better = writer.make(of.better(), {a, b}, "better");
  if (!is_float(writer.dtype(a))) return better;
  const Id nan = writer.make(OpKind::IsNaN, {of.largest ? a : b}, "nan");
  const Id other = writer.make(OpKind::IsNaN, {of.largest ? b : a}, "other_nan");
  const Id number = writer.make(OpKind::Not, {other}, "other_number");
  return writer.make(OpKind::Or, {better, writer.make(OpKind::And, {nan, number}, "by_nan")},
                     "comes_before");
}

Id are_equal(PrimitiveWriter& writer, Id a, Id b) {
  const Id equal = writer.make(OpKind::Equal, {a, b}, "equal");
  if (!is_float(writer.dtype(a))) return equal;
  const Id nan = writer.make(OpKind::IsNaN, {a}, "nan");
  const Id other = writer.make(OpKind::IsNaN, {b}, "other_nan");
  return writer.make(OpKind::Or, {equal, writer.make(OpKind::And, {nan, other}, "both_nan")},
                     "are_equal");
}

// An element's rank is how many come before it: those that are better, and equal ones on its left.
Picked picked_by_rank(PrimitiveWriter& writer, const Top& of) {
  const size_t rank = writer.rank(of.x) + 1;
  const Id own = with_axis(writer, of.x, of.axis + 1, "own");  // [.., i, 1, ..]
  const Id other = with_axis(writer, of.x, of.axis, "other");  // [.., 1, j, ..]
  const Shape rows = with(Shape(rank, 1), of.axis, of.size);
  const Shape columns = with(Shape(rank, 1), of.axis + 1, of.size);
  const Id i = writer.places(rows, "own_place");
  const Id j = writer.places(columns, "other_place");
  const Id better = comes_before(writer, of, other, own);
  const Id equal = are_equal(writer, other, own);
  const Id left = writer.make(OpKind::Less, {j, i}, "left");
  const Id tied = writer.make(OpKind::And, {equal, left}, "tied");
  const Id before = writer.make(OpKind::Or, {better, tied}, "before");
  const Dtype counting = of.size <= 1 << 24 ? Dtype::f32 : Dtype::i64;
  const Id ones = writer.cast(before, counting, "ones");
  const List over = {as_int64(of.axis) + 1};
  const Id ranks = writer.reduce(OpKind::ReduceSum, ones, over, "rank");  // [.., i, 1, ..]
  const Shape wanted = with(Shape(rank, 1), of.axis + 1, of.k);
  const Id place = writer.table(counting, wanted, "wanted", [](int64_t p) { return p; });
  const Id hit = writer.make(OpKind::Equal, {ranks, place}, "hit");  // [.., i, k, ..]
  const List lines = {as_int64(of.axis)};
  const Id none = writer.constant(Dtype::i64, {}, {-1}, "none");
  const Id numbers = writer.where(hit, i, none, "numbers");
  const Id worst = writer.scalar(of.worst(writer.dtype(of.x)), of.x, "worst");
  const Id chosen = writer.where(hit, own, worst, "chosen");
  return {writer.reduce(of.best(), chosen, lines, "values", 0),
          writer.reduce(OpKind::ReduceMax, numbers, lines, "indices", 0)};
}

// What a pick reads of a line: a NaN is the best where the largest are wanted, else the worst, and
// told by a place behind the line's end.
struct Line {
  Id x = kAbsent;
  Id nan = kAbsent;   // whether an element is one; kAbsent: none is
  Id far = kAbsent;   // places of NaNs that come last
  Id size = kAbsent;  // of the line
};

Line line_of(PrimitiveWriter& writer, const Top& of, Id place, Id worst) {
  Line line;
  line.x = of.x;
  if (!is_float(writer.dtype(of.x))) return line;
  line.nan = writer.make(OpKind::IsNaN, {of.x}, "nan");
  if (of.largest) return line;
  line.x = writer.where(line.nan, worst, of.x, "numbers");
  line.size = writer.scalar(as_double(of.size), place, "size");
  line.far = writer.add(place, line.size, "far");
  return line;
}

// The best of what is left, one after another; of equal ones the first.
Picked picked_in_turn(PrimitiveWriter& writer, const Top& of) {
  const List line = {as_int64(of.axis)};
  const size_t rank = writer.rank(of.x);
  const Id place = writer.places(with(Shape(rank, 1), of.axis, of.size), "place");
  const Id worst = writer.scalar(of.worst(writer.dtype(of.x)), of.x, "worst");
  const Id none = writer.constant(Dtype::i64, {}, {2 * as_double(of.size)}, "none");
  const Line own_line = line_of(writer, of, place, worst);
  std::vector<Id> values;
  std::vector<Id> places;
  Id left = kAbsent;  // what has not been picked; kAbsent: all
  for (int64_t n = 0; n < of.k; ++n) {
    const Id x = own_line.x;
    const Id there = left == kAbsent ? x : writer.where(left, x, worst, "there");
    Id best = writer.reduce(of.best(), there, line, "best");
    Id equal = writer.make(OpKind::Equal, {of.x, best}, "equal");
    if (own_line.nan != kAbsent && of.largest)
      equal = writer.make(OpKind::Or, {equal, own_line.nan}, "or_nan");
    Id otherwise = none;
    if (own_line.far != kAbsent) otherwise = writer.where(own_line.nan, own_line.far, none, "nans");
    Id numbers = writer.where(equal, place, otherwise, "numbers");
    if (left != kAbsent) numbers = writer.where(left, numbers, none, "numbers_left");
    Id first = writer.reduce(OpKind::ReduceMin, numbers, line, "first");
    if (own_line.far != kAbsent) {
      const Id is_nan = writer.make(OpKind::GreaterOrEqual, {first, own_line.size}, "is_nan");
      const Id near = writer.sub(first, own_line.size, "near");
      first = writer.where(is_nan, near, first, "place");
      const Id nan = writer.scalar(std::numeric_limits<double>::quiet_NaN(), best, "nan");
      best = writer.where(is_nan, nan, best, "value");
    }
    const Id own = writer.make(OpKind::Equal, {place, first}, "own");
    const Id others = writer.make(OpKind::Not, {own}, "others");
    left = left == kAbsent ? others : writer.make(OpKind::And, {left, others}, "left");
    values.push_back(best);
    places.push_back(first);
  }
  return {joined(writer, std::move(values), of.axis, "values"),
          joined(writer, std::move(places), of.axis, "indices")};
}
}  // namespace

namespace {
// k: an input, an attribute of the first operator sets.
Result<int64_t> wanted_count(const PrimitiveWriter& writer) {
  if (!writer.has(1)) {
    const int64_t named = writer.node.integer("k", -1);
    if (named >= 0) return named;
    return writer.error(ErrorCode::kOnnxName, "a TopK lacks its k", "an input", "nothing");
  }
  const auto k = constant_scalar(writer.graph, writer.raw(1));
  if (k) return as_int64(*k);
  return writer.error(ErrorCode::kOnnxDynamicShape, "how many a TopK takes is not known",
                      "a constant", writer.in(1), "export the model with a fixed k");
}

// Unsigned numbers of 64 bits as signed ones in the same order, and back.
Id turned_over(PrimitiveWriter& writer, Id x, Dtype to) {
  const Id whole = writer.cast(x, Dtype::i64, "whole");
  const Id half = writer.scalar(-0x1p63, whole, "half");
  return writer.cast(writer.add(whole, half, "turned_over"), to, "in_order");
}
}  // namespace

// The k best along an axis and where they are, sorted.
Result<Outputs> top_k(PrimitiveWriter& writer) {
  const bool is_unsigned = writer.in(0).dtype == Dtype::u64;
  if (!is_unsigned) WARPLOOM_CHECK(check_number(writer, 0));
  Top of;
  of.x = writer.raw(0);
  if (is_unsigned) of.x = turned_over(writer, of.x, Dtype::i64);
  WARPLOOM_TRY(of.axis, checked_axis(writer));
  of.size = writer.shape(of.x)[of.axis];
  WARPLOOM_TRY(of.k, wanted_count(writer));
  of.largest = writer.node.integer("largest") != 0;
  if (of.k < 0 || of.k > of.size)
    return writer.error(kShape, "a TopK takes more than there is", fmt::format("0 to {}", of.size),
                        of.k);
  if (of.k == 0) {
    const Shape none = with(writer.shape(of.x), of.axis, 0);
    return Outputs{part_of(writer, writer.raw(0), of.axis, 0, 0, "values"),
                   writer.table(Dtype::i64, none, "indices", [](int64_t) { return 0; })};
  }
  const int64_t most = of.size > kShortLine ? kMostPicked : kFew;
  const bool in_turn = of.k == 1 || (of.size > kShortForFew && of.k <= most);
  Picked found = in_turn ? picked_in_turn(writer, of) : picked_by_rank(writer, of);
  if (is_unsigned) found.values = turned_over(writer, found.values, Dtype::u64);
  return Outputs{found.values, found.places};
}

// Elements where a condition that the model knows is true.
Result<Outputs> compress(PrimitiveWriter& writer) {
  const auto known = constant_integers(writer.graph, writer.raw(1));
  const bool is_list = writer.in(1).shape.size() == 1 && writer.in(1).dtype == Dtype::boolean;
  if (!is_list) return type_error(writer, "a list of booleans", writer.in(1));
  if (!known)
    return writer.error(ErrorCode::kOnnxDynamicShape, "the condition of a Compress is not known",
                        "a constant", writer.in(1),
                        "do it outside the model: the size of its result depends on the values");
  Id x = writer.raw(0);
  size_t axis = 0;
  if (writer.node.attributes.contains("axis")) {
    WARPLOOM_TRY(axis, checked_axis(writer));
  } else {
    x = writer.reshape(x, {element_count(writer.shape(x))}, "flat");
  }
  const int64_t size = writer.shape(x)[axis];
  if (std::ssize(*known) > size)
    return writer.error(kShape, "the condition is longer than the axis",
                        fmt::format("at most {}", size), writer.in(1).shape);
  List kept;
  for (int64_t i = 0; i < std::ssize(*known); ++i)
    if ((*known)[i] != 0) kept.push_back(i);
  const Id places = writer.list(kept, "kept");
  const auto along = as_int64(axis);
  return Outputs{writer.make(OpKind::Gather, {x, places}, "y", {{"axis", along}})};
}

// The first elements of each line, as many as the lengths say, in the opposite order.
Result<Outputs> reverse_sequence(PrimitiveWriter& writer) {
  WARPLOOM_CHECK(check_indices(writer));
  const Shape x = writer.in(0).shape;
  const int64_t time = writer.node.integer("time_axis");
  const int64_t batch = writer.node.integer("batch_axis");
  const bool known = (time == 0 && batch == 1) || (time == 1 && batch == 0);
  if (!known)
    return writer.error(kAttribute, "the axes of time and batch are the first two", "0 and 1",
                        fmt::format("{} and {}", time, batch));
  if (x.size() < 2) return writer.error(kShape, "a sequence has two axes", "2 axes or more", x);
  WARPLOOM_CHECK(check_vector(writer, 1, x[batch]));
  const Shape by_batch = batch == 0 ? Shape{x[0], 1} : Shape{1, x[1]};
  const Shape by_time = time == 0 ? Shape{x[0], 1} : Shape{1, x[1]};
  const Id whole = writer.cast(writer.raw(1), Dtype::i64, "whole");
  const Id lengths = writer.reshape(whole, by_batch, "lengths");
  const Id place = writer.places(by_time, "place");
  const Id one = writer.scalar(1, lengths, "one");
  const Id mirrored = writer.sub(writer.sub(lengths, one, "last"), place, "mirrored");
  const Id inside = writer.make(OpKind::Less, {place, lengths}, "inside");
  const Id from = writer.where(inside, mirrored, place, "from");
  Places places{writer, writer.raw(0), 2, {x[0], x[1]}};
  const Id index = writer.cast(from, places.type, "index");
  for (size_t d = 0; d < 2; ++d)
    if (as_int64(d) == time)
      places.add(d, index, false);
    else
      places.add(d);
  return Outputs{places.taken()};
}

// Products of each element and those before it: of all, those behind counting as 1.
Result<Outputs> cum_prod(PrimitiveWriter& writer) {
  WARPLOOM_CHECK(check_number(writer, 0));
  WARPLOOM_TRY(const List named, list(writer, 1, "the axis", 1));
  const Shape shape = writer.in(0).shape;
  if (named.empty()) return writer.error(kShape, "the axis is missing", "one integer", "none");
  WARPLOOM_TRY(const int at, normalized_axis(named[0], shape.size(), writer.place));
  const auto axis = as_size(at);
  const bool exclusive = writer.node.integer("exclusive") != 0;
  const bool reverse = writer.node.integer("reverse") != 0;
  const Id x = writer.wide(0);
  const size_t rank = shape.size() + 1;
  const Id other = with_axis(writer, x, axis, "other");  // [.., 1, j, ..]
  const Id i = writer.places(with(Shape(rank, 1), axis, shape[axis]), "own_place");
  const Id j = writer.places(with(Shape(rank, 1), axis + 1, shape[axis]), "other_place");
  OpKind counts = exclusive ? OpKind::Less : OpKind::LessOrEqual;
  if (reverse) counts = exclusive ? OpKind::Greater : OpKind::GreaterOrEqual;
  const Id before = writer.make(counts, {j, i}, "before");
  const Id one = writer.scalar(1, x, "one");
  const Id factors = writer.where(before, other, one, "factors");
  return Outputs{writer.reduce(OpKind::ReduceProd, factors, {as_int64(axis) + 1}, "y", 0)};
}
}  // namespace warploom::graph::rewrites
