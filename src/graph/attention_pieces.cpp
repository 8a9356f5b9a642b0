#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "graph/composite_attention.h"
#include "graph/graph.h"
#include "graph/rules.h"

namespace warploom::graph {
namespace {
double lowest(Dtype dtype) {
  if (dtype == Dtype::f64) return std::numeric_limits<double>::lowest();
  return as_double(std::numeric_limits<float>::lowest());
}

// A tensor of four axes whose second is the query heads, or 1, with the groups as an axis of their
// own.
Id by_group(PrimitiveWriter& writer, Id x, const HeadCounts& counts, std::string_view what) {
  const Shape given = writer.shape(x);
  if (counts.groups == 1) return x;
  const bool each = given[1] != 1;
  const int64_t heads = each ? counts.heads : 1;
  const int64_t groups = each ? counts.groups : 1;
  return writer.reshape(x, {given[0], heads, groups, given[2], given[3]}, what);
}

// The same the other way round: the groups' axis joined with the heads'.
Id without_groups(PrimitiveWriter& writer, Id x, const HeadCounts& counts, std::string_view what) {
  const Shape given = writer.shape(x);
  const size_t rank = given.size();
  const int64_t heads = counts.heads * counts.groups;
  return writer.reshape(x, {counts.batch, heads, given[rank - 2], given[rank - 1]}, what);
}

// A row of nothing but -inf becomes zeros where `guarded`: its largest counts as finite, and its
// sum, which is 0 then and else at least 1, as a half. A sink has a share that nobody gets.
Id softmax_of(PrimitiveWriter& writer, Id x, bool guarded, Id sink) {
  const List last = span(writer.rank(x) - 1, writer.rank(x));
  Id top = writer.reduce(OpKind::ReduceMax, x, last, "top");
  if (sink != kAbsent) top = writer.make(OpKind::Max, {top, sink}, "top_or_sink");
  if (guarded) {
    const Id least = writer.scalar(lowest(writer.dtype(x)), x, "least");
    top = writer.make(OpKind::Max, {top, least}, "finite_top");
  }
  const Id shifted = writer.sub(x, top, "shifted");
  const Id powers = writer.make(OpKind::Exp, {shifted}, "powers");
  Id sum = writer.reduce(OpKind::ReduceSum, powers, last, "sum");
  if (sink != kAbsent) {
    const Id below = writer.sub(sink, top, "sink_below_top");
    sum = writer.add(sum, writer.make(OpKind::Exp, {below}, "sink_share"), "sum_and_sink");
  }
  if (guarded) {
    const Id half = writer.scalar(0.5, x, "half");
    sum = writer.make(OpKind::Max, {sum, half}, "divisor");
  }
  const Id inverse = writer.make(OpKind::Reciprocal, {sum}, "inverse");
  return writer.mul(powers, inverse, "probabilities");
}

Id softcapped(PrimitiveWriter& writer, Id x, double cap) {
  if (cap == 0) return x;
  const Id inverse = writer.scalar(1 / cap, x, "inverse_cap");
  const Id bent = writer.make(OpKind::Tanh, {writer.mul(x, inverse, "by_cap")}, "bent");
  return writer.mul(bent, writer.scalar(cap, x, "cap"), "capped");
}

Id all_of(PrimitiveWriter& writer, const std::vector<Id>& conditions) {
  Id all = kAbsent;
  for (const Id one : conditions)
    all = all == kAbsent ? one : writer.make(OpKind::And, {all, one}, "kept");
  return all;
}

Id as_wide(PrimitiveWriter& writer, Id x, std::string_view what) {
  const bool narrow = bits_of(writer.dtype(x)) == 16;
  return narrow ? writer.cast(x, Dtype::f32, what) : x;
}
}  // namespace

Attended attended(PrimitiveWriter& writer, const AttentionParts& parts) {
  const HeadCounts& counts = parts.counts;
  const Dtype type = writer.dtype(parts.query);
  const Shape keys = writer.shape(parts.key);
  const Shape values = writer.shape(parts.value);
  const Id query = by_group(writer, parts.query, counts, "query");
  const List exchanged = {0, 1, 3, 2};
  Id key = writer.make(OpKind::Transpose, {parts.key}, "turned_key", {{"perm", exchanged}});
  const Shape outer = counts.outer(true);
  key = writer.reshape(key, chained(outer, {keys[3], keys[2]}), "key");
  const Id value = writer.reshape(parts.value, chained(outer, {values[2], values[3]}), "value");
  const Id product = writer.make(OpKind::MatMul, {query, key}, "scores");
  Id scores = as_wide(writer, product, "wide_scores");
  scores = writer.mul(scores, writer.scalar(parts.scale, scores, "scale"), "scaled");
  Attended made;
  const auto stage = [&](Id x, std::string_view what) {
    return writer.cast(without_groups(writer, x, counts, what), type, what);
  };
  made.raw = stage(scores, "raw_scores");
  scores = softcapped(writer, scores, parts.softcap);
  made.capped = stage(scores, "capped_scores");
  if (parts.added != kAbsent) {
    const Id added = as_wide(writer, by_group(writer, parts.added, counts, "bias"), "wide_bias");
    scores = writer.add(scores, added, "biased");
  }
  std::vector<Id> kept;
  for (const Id one : parts.kept)
    kept.push_back(by_group(writer, one, counts, "seen"));
  if (const Id all = all_of(writer, kept); all != kAbsent) {
    const double infinity = std::numeric_limits<double>::infinity();
    const Id beyond = writer.scalar(-infinity, scores, "beyond");
    scores = writer.where(all, scores, beyond, "masked");
  }
  made.biased = stage(scores, "biased_scores");
  Id sink = parts.sink;
  if (sink != kAbsent) sink = as_wide(writer, by_group(writer, sink, counts, "sink"), "wide_sink");
  const Id wide = softmax_of(writer, scores, parts.may_see_nothing, sink);
  made.chosen = stage(wide, "chosen");
  const Id narrow = writer.cast(wide, writer.dtype(parts.value), "weights");
  const Id sums = writer.make(OpKind::MatMul, {narrow, value}, "sums");
  made.y = writer.cast(without_groups(writer, sums, counts, "joined_groups"), type, "attended");
  return made;
}

bool SeenKeys::may_be_none() const {
  if (offsets != kAbsent || offset < 0) return true;
  const bool leaves_behind = left >= 0 && offset + queries - 1 - left > keys - 1;
  return leaves_behind || keys == 0;
}

std::vector<Id> seen_keys(PrimitiveWriter& writer, const SeenKeys& seen) {
  std::vector<Id> conditions;
  const Id column = writer.places({1, 1, 1, seen.keys}, "key_place");
  // Places of queries, moved: by comparing them no mask is stored.
  const auto row = [&](int64_t by, std::string_view what) {
    const Shape rows = {1, 1, seen.queries, 1};
    const auto place = [&](int64_t i) { return i + seen.offset + by; };
    const Id own = writer.table(Dtype::i64, rows, what, place);
    return seen.offsets == kAbsent ? own : writer.add(own, seen.offsets, what);
  };
  const bool ends = seen.causal || seen.right >= 0;
  if (ends) {
    const int64_t behind = seen.causal ? 0 : seen.right;
    const Id last = row(behind, "last_place");
    conditions.push_back(writer.make(OpKind::LessOrEqual, {column, last}, "before_end"));
  }
  if (seen.left >= 0) {
    const Id first = row(-seen.left, "first_place");
    conditions.push_back(writer.make(OpKind::GreaterOrEqual, {column, first}, "within_reach"));
  }
  return conditions;
}

Id heads_apart(PrimitiveWriter& writer, Id x, int64_t heads, std::string_view what) {
  const Shape given = writer.shape(x);
  const int64_t size = heads == 0 ? 0 : given[2] / heads;
  const Id apart = writer.reshape(x, {given[0], given[1], heads, size}, what);
  const List order = {0, 2, 1, 3};
  return writer.make(OpKind::Transpose, {apart}, what, {{"perm", order}});
}

Id heads_joined(PrimitiveWriter& writer, Id x, std::string_view what) {
  const Shape given = writer.shape(x);
  const List order = {0, 2, 1, 3};
  const Id turned = writer.make(OpKind::Transpose, {x}, what, {{"perm", order}});
  return writer.reshape(turned, {given[0], given[2], given[1] * given[3]}, what);
}

Id part_of(PrimitiveWriter& writer, Id x, size_t axis, int64_t begin, int64_t end,
           std::string_view what, int64_t step) {
  const bool whole = begin == 0 && end == writer.shape(x)[axis] && step == 1;
  if (whole) return x;
  const Id from = writer.list({begin}, "from");
  const Id to = writer.list({end}, "to");
  const Id on = writer.list(span(axis, axis + 1), "axis");
  const Id by = writer.list({step}, "step");
  return writer.make(OpKind::Slice, {x, from, to, on, by}, what);
}

Id joined(PrimitiveWriter& writer, std::vector<Id> parts, size_t axis, std::string_view what) {
  if (parts.size() == 1) return parts[0];
  const auto along = as_int64(axis);
  return writer.make(OpKind::Concat, std::move(parts), what, {{"axis", along}});
}

Id rotated(PrimitiveWriter& writer, Id x, Id cosines, Id sines, int64_t size, bool neighbours) {
  const size_t last = writer.rank(x) - 1;
  const Shape whole = writer.shape(x);
  const int64_t half = size / 2;
  const Id turned = part_of(writer, x, last, 0, size, "turned");
  Id real = kAbsent;
  Id imaginary = kAbsent;
  if (neighbours) {
    real = part_of(writer, turned, last, 0, size, "even", 2);
    imaginary = part_of(writer, turned, last, 1, size, "odd", 2);
  } else {
    real = part_of(writer, turned, last, 0, half, "first_half");
    imaginary = part_of(writer, turned, last, half, size, "second_half");
  }
  const auto crossed = [&](Id a, Id b, OpKind op, std::string_view what) {
    const Id left = writer.mul(real, a, "by_real");
    const Id right = writer.mul(imaginary, b, "by_imaginary");
    return writer.make(op, {left, right}, what);
  };
  std::vector<Id> pieces = {crossed(cosines, sines, OpKind::Sub, "real"),
                            crossed(sines, cosines, OpKind::Add, "imaginary")};
  if (neighbours) {
    const Shape apart = with(whole, last, half);
    for (Id& piece : pieces)
      piece = writer.reshape(piece, chained(apart, {1}), "apart");
    const Id pairs = joined(writer, pieces, last + 1, "pairs");
    pieces = {writer.reshape(pairs, with(whole, last, size), "in_turns")};
  }
  if (size < whole[last]) pieces.push_back(part_of(writer, x, last, size, whole[last], "rest"));
  return joined(writer, std::move(pieces), last, "rotated");
}
}  // namespace warploom::graph
