// The rewriting of ONNX Runtime's attention operators.
#include <fmt/format.h>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "graph/composite_attention.h"
#include "graph/graph.h"
#include "graph/operators.h"
#include "graph/rules.h"

namespace warploom::graph::rewrites {
namespace {
Status check_float(const NodeContext& context, size_t i) {
  if (!context.has(i)) return ok();
  WARPLOOM_CHECK(check_number(context, i, true));
  const Dtype wanted = context.in(0).dtype;
  const Dtype found = context.in(i).dtype;
  if (found == wanted) return ok();
  return type_error(context, fmt::format("input {} of {}", i, name_of(wanted)), found);
}

Status check_axes(const NodeContext& context, size_t i, size_t axes) {
  if (!context.has(i) || context.in(i).shape.size() == axes) return ok();
  const std::string message = fmt::format("input {} has another number of axes", i);
  return context.error(kShape, message, fmt::format("{} axes", axes), context.in(i).shape);
}

Result<int64_t> named_heads(const NodeContext& context, std::string_view name, int64_t columns) {
  const int64_t heads = context.node.integer(name);
  if (heads >= 1 && columns % heads == 0) return heads;
  const std::string expected = fmt::format("a divisor of {}", columns);
  return context.error(kAttribute, fmt::format("{} does not divide the columns", name), expected,
                       heads);
}

double scale_of(const NodeContext& context, int64_t size) {
  const double named = context.node.real("scale");
  return named != 0 ? named : 1 / std::sqrt(as_double(size));
}

// What a mask of whole numbers adds to the scores: nothing where it is 1, mask_filter_value where
// it is 0. Of the shapes that ONNX Runtime knows those with an entry for each key.
Result<Id> filtered(PrimitiveWriter& writer, size_t i, const Shape& scores, Dtype type) {
  const Tensor& mask = writer.in(i);
  const Shape given = mask.shape;
  if (is_float(mask.dtype)) return type_error(writer, "a mask of whole numbers", mask.dtype);
  Shape four = {scores[0], 1, 1, scores[3]};
  const Shape by_query = {scores[0], scores[2], scores[3]};
  const bool lengths = given == Shape{scores[0]};
  if (given == by_query) four = {scores[0], 1, scores[2], scores[3]};
  const bool by_key = given == Shape{scores[0], scores[3]};
  if (!lengths && !by_key && given != by_query)
    return writer.error(kShape, "a mask of this form is not supported",
                        fmt::format("[B], [B,T] or [B,S,T] of scores {}", to_text(scores)), given);
  const Id whole = writer.cast(writer.raw(i), Dtype::i64, "mask");
  Id seen = kAbsent;
  if (lengths) {
    const Id column = writer.places({1, 1, 1, scores[3]}, "key_place");
    const Id ends = writer.reshape(whole, {scores[0], 1, 1, 1}, "ends");
    seen = writer.make(OpKind::Less, {column, ends}, "seen");
  } else {
    const Id apart = writer.reshape(whole, four, "mask");
    const Id none = writer.scalar(0, apart, "none");
    seen = writer.make(OpKind::Greater, {apart, none}, "seen");
  }
  const double filter = writer.node.real("mask_filter_value", -10000);
  const Id zero = writer.constant(type, {}, {0}, "added_where_seen");
  const Id filler = writer.constant(type, {}, {filter}, "added_elsewhere");
  return writer.where(seen, zero, filler, "filtered");
}

// A bias that stretches to the scores, of four axes.
Result<Id> score_bias(PrimitiveWriter& writer, size_t i, const Shape& scores) {
  const Shape given = writer.in(i).shape;
  bool fits = given.size() == 4 && given[3] == scores[3] && given[2] == scores[2];
  for (size_t d = 0; fits && d < 2; ++d)
    fits = given[d] == 1 || given[d] == scores[d];
  if (fits) return writer.raw(i);
  return writer.error(kShape, "the bias does not stretch to the scores", scores, given);
}

Id added_to(PrimitiveWriter& writer, Id sum, Id more) {
  return sum == kAbsent ? more : writer.add(sum, more, "all_biases");
}

// [B,S,columns] plus a part of a vector of biases.
Id with_bias(PrimitiveWriter& writer, Id x, size_t bias, int64_t begin, std::string_view what) {
  if (!writer.has(bias)) return x;
  const int64_t end = begin + writer.shape(x).back();
  return writer.add(x, part_of(writer, writer.raw(bias), 0, begin, end, "bias"), what);
}

struct Operands {
  Id query = kAbsent;  // all [B,H,S,D]
  Id key = kAbsent;
  Id value = kAbsent;
};

// One of what is packed next to one another: x [B,S,H,count,D], part i as [B,S,H·D].
Id unpacked_part(PrimitiveWriter& writer, Id x, int64_t i) {
  const Shape given = writer.shape(x);
  const Id one = part_of(writer, x, 3, i, i + 1, "part");
  return writer.reshape(one, {given[0], given[1], given[2] * given[4]}, "part");
}

// A MultiHeadAttention's three operands with their biases: packed, in rows, or already apart.
Result<Operands> head_operands(PrimitiveWriter& writer, int64_t heads) {
  const size_t axes = writer.in(0).shape.size();
  const bool packed = axes == 5 && !writer.has(1) && writer.in(0).shape[3] == 3;
  Operands of{writer.raw(0), writer.raw(1), writer.raw(2)};
  if (packed) {
    const Id all = of.query;
    of = {unpacked_part(writer, all, 0), unpacked_part(writer, all, 1),
          unpacked_part(writer, all, 2)};
  } else if (axes != 3 || !writer.has(1)) {
    return writer.error(kShape, "a query of this form is not supported",
                        "[B,S,H·D] beside a key, or [B,S,H,3,D]", writer.in(0).shape);
  }
  const bool pair = !packed && !writer.has(2);
  if (pair) {
    const Shape both = writer.in(1).shape;
    if (both.size() != 5 || both[3] != 2)
      return writer.error(kShape, "a key without a value", "[B,T,H,2,D]", both);
    const Id all = of.key;
    of.key = unpacked_part(writer, all, 0);
    of.value = unpacked_part(writer, all, 1);
  }
  const int64_t columns = writer.shape(of.query)[2];
  WARPLOOM_TRY(const int64_t dividing, named_heads(writer, "num_heads", columns));
  of.query = heads_apart(writer, with_bias(writer, of.query, 3, 0, "query"), dividing, "query");
  const auto apart = [&](Id x, int64_t from, std::string_view what) -> Result<Id> {
    const Shape given = writer.shape(x);
    if (given.size() == 4) return x;  // [B,H,T,D], with their biases
    if (given.size() != 3 || given[2] % heads != 0)
      return writer.error(kShape, "keys or values do not fit the heads", "[B,T,H·D]", given);
    return heads_apart(writer, with_bias(writer, x, 3, from, what), heads, what);
  };
  WARPLOOM_TRY(of.key, apart(of.key, columns, "key"));
  WARPLOOM_TRY(of.value, apart(of.value, 2 * columns, "value"));
  return of;
}

Result<Id> behind_past(PrimitiveWriter& writer, size_t input, Id now) {
  if (!writer.has(input)) return now;
  const Shape past = writer.in(input).shape;
  Shape wanted = writer.shape(now);
  if (past.size() == 4) wanted[2] = past[2];
  if (past != wanted)
    return writer.error(kShape, "the past does not fit what is new", wanted, past);
  return joined(writer, {writer.raw(input), now}, 2, "present");
}

Result<HeadCounts> fitting(PrimitiveWriter& writer, const Operands& of) {
  const Shape& query = writer.shape(of.query);
  const Shape& key = writer.shape(of.key);
  const Shape& value = writer.shape(of.value);
  const bool same = key[0] == value[0] && key[1] == value[1] && key[2] == value[2];
  const bool fits = same && query[0] == key[0] && query[3] == key[3];
  if (fits && key[1] > 0 && query[1] % key[1] == 0)
    return HeadCounts{key[0], key[1], query[1] / key[1]};
  const std::string found =
      fmt::format("{}, {} and {}", to_text(query), to_text(key), to_text(value));
  return writer.error(kShape, "query, key and value do not fit",
                      "[B,H·G,S,D], [B,H,T,D] and [B,H,T,E]", found);
}

AttentionParts parts_of(PrimitiveWriter& writer, const Operands& of, const HeadCounts& counts) {
  AttentionParts parts;
  parts.query = of.query;
  parts.key = of.key;
  parts.value = of.value;
  parts.counts = counts;
  parts.scale = scale_of(writer, writer.shape(of.query)[3]);
  return parts;
}

SeenKeys causal_keys(PrimitiveWriter& writer, const Operands& of) {
  SeenKeys seen;
  seen.queries = writer.shape(of.query)[2];
  seen.keys = writer.shape(of.key)[2];
  seen.offset = seen.keys - seen.queries;
  seen.causal = true;
  return seen;
}

Shape scores_of(const PrimitiveWriter& writer, const Operands& of) {
  const Shape& query = writer.shape(of.query);
  return {query[0], query[1], query[2], writer.shape(of.key)[2]};
}
}  // namespace

// query, key, value, bias, key mask, score bias, past key, past value → Y, present key and value,
// scores behind the softmax.
Result<Outputs> multi_head_attention(PrimitiveWriter& writer) {
  for (const size_t i : {0, 1, 2, 3, 5, 6, 7})
    WARPLOOM_CHECK(check_float(writer, i));
  if (writer.has(8) || writer.has(9))
    return writer.error(ErrorCode::kOnnxName, "a cache that is shared is not supported",
                        "8 inputs at most", "past_sequence_length or cache_indirection",
                        "export without a buffer that past and present share");
  WARPLOOM_CHECK(check_axes(writer, 3, 1));
  const int64_t heads = writer.node.integer("num_heads");
  if (heads < 1) return writer.error(kAttribute, "num_heads is missing", "1 or more", heads);
  WARPLOOM_TRY(Operands of, head_operands(writer, heads));
  if (writer.has(6) != writer.has(7))
    return writer.error(ErrorCode::kOnnxName, "one of past_key and past_value is missing",
                        "both or none");
  WARPLOOM_TRY(of.key, behind_past(writer, 6, of.key));
  WARPLOOM_TRY(of.value, behind_past(writer, 7, of.value));
  WARPLOOM_TRY(const HeadCounts counts, fitting(writer, of));
  AttentionParts parts = parts_of(writer, of, counts);
  const Shape scores = scores_of(writer, of);
  const Dtype type = writer.in(0).dtype;
  if (writer.has(4)) {
    WARPLOOM_TRY(parts.added, filtered(writer, 4, scores, type));
  }
  if (writer.has(5)) {
    WARPLOOM_TRY(const Id bias, score_bias(writer, 5, scores));
    parts.added = added_to(writer, parts.added, bias);
  }
  if (writer.node.integer("unidirectional") != 0) {
    const SeenKeys seen = causal_keys(writer, of);
    parts.kept = seen_keys(writer, seen);
    parts.may_see_nothing = seen.may_be_none();
  }
  parts.may_see_nothing = parts.may_see_nothing || writer.has(5);
  const Attended made = attended(writer, parts);
  return Outputs{heads_joined(writer, made.y, "y"), of.key, of.value, made.chosen};
}

namespace {
// Columns of query, key and value in a projection.
Result<List> projected_columns(const NodeContext& context) {
  const Shape& weights = context.in(1).shape;
  if (weights.size() != 2)
    return context.error(kShape, "the weights are no matrix", "[columns,3·H·D]", weights);
  const List named = context.node.integers("qkv_hidden_sizes");
  if (named.empty() && weights[1] % 3 == 0) return List(3, weights[1] / 3);
  const bool fits = named.size() == 3 && named[0] > 0 && named[0] == named[1] && named[2] > 0;
  if (fits && named[0] + named[1] + named[2] == weights[1]) return named;
  return context.error(kAttribute, "qkv_hidden_sizes do not make up the columns",
                       fmt::format("three that add up to {}", weights[1]), named);
}

// past [2,B,H,P,D]: keys, then values.
Id half_of_past(PrimitiveWriter& writer, Id past, int64_t which) {
  const Shape given = writer.shape(past);
  const Id half = part_of(writer, past, 0, which, which + 1, "half");
  return writer.reshape(half, entries(given, 1), "half");
}

// Keys and values behind those of the past, where there is one.
Status behind_past(PrimitiveWriter& writer, Operands& of, bool is_even) {
  if (!writer.has(4)) return ok();
  const Shape past = writer.in(4).shape;
  Shape wanted = chained({2}, writer.shape(of.key));
  wanted[3] = past[3];
  if (past != wanted || !is_even)
    return writer.error(kShape, "the past does not fit what is new", wanted, past);
  of.key = joined(writer, {half_of_past(writer, writer.raw(4), 0), of.key}, 2, "keys");
  of.value = joined(writer, {half_of_past(writer, writer.raw(4), 1), of.value}, 2, "values");
  return ok();
}

// Keys and values as the next call's past.
Id present_of(PrimitiveWriter& writer, const Operands& of) {
  const Shape one = chained({1}, writer.shape(of.key));
  const Id keys = writer.reshape(of.key, one, "present_key");
  const Id values = writer.reshape(of.value, one, "present_value");
  return joined(writer, {keys, values}, 0, "present");
}

// What masks, biases and the order of keys do to the scores.
Status weigh_scores(PrimitiveWriter& writer, const Operands& of, AttentionParts& parts) {
  const Shape scores = scores_of(writer, of);
  if (writer.has(3)) WARPLOOM_TRY(parts.added, filtered(writer, 3, scores, writer.in(0).dtype));
  if (writer.has(5)) {
    WARPLOOM_TRY(const Id bias, score_bias(writer, 5, scores));
    parts.added = added_to(writer, parts.added, bias);
  }
  if (writer.node.integer("unidirectional") != 0)
    parts.kept = seen_keys(writer, causal_keys(writer, of));
  parts.may_see_nothing = writer.has(5);
  return ok();
}
}  // namespace

// input, weights, bias, mask, past, score bias → Y, present.
Result<Outputs> projected_attention(PrimitiveWriter& writer) {
  for (const size_t i : {0, 1, 2, 4, 5})
    WARPLOOM_CHECK(check_float(writer, i));
  WARPLOOM_CHECK(check_axes(writer, 0, 3));
  WARPLOOM_CHECK(check_axes(writer, 4, 5));
  WARPLOOM_TRY(const List columns, projected_columns(writer));
  if (writer.node.integer("do_rotary") != 0 || writer.has(6))
    return writer.error(kAttribute, "an Attention that turns, or shares a buffer, is not supported",
                        "do_rotary 0 and no past_sequence_length", "more",
                        "export RotaryEmbedding and MultiHeadAttention");
  if (writer.has(2)) WARPLOOM_CHECK(check_vector(writer, 2, writer.in(1).shape[1]));
  Id all = writer.make(OpKind::MatMul, {writer.raw(0), writer.raw(1)}, "projected");
  if (writer.has(2)) all = writer.add(all, writer.raw(2), "biased");
  const auto part = [&](int64_t begin, int64_t size, std::string_view what) -> Result<Id> {
    WARPLOOM_TRY(const int64_t heads, named_heads(writer, "num_heads", size));
    const Id own = part_of(writer, all, 2, begin, begin + size, what);
    return heads_apart(writer, own, heads, what);
  };
  Operands of;
  WARPLOOM_TRY(of.query, part(0, columns[0], "query"));
  WARPLOOM_TRY(of.key, part(columns[0], columns[1], "key"));
  WARPLOOM_TRY(of.value, part(columns[0] + columns[1], columns[2], "value"));
  const bool is_even = columns[0] == columns[2];
  WARPLOOM_CHECK(behind_past(writer, of, is_even));
  WARPLOOM_TRY(const HeadCounts counts, fitting(writer, of));
  AttentionParts parts = parts_of(writer, of, counts);
  WARPLOOM_CHECK(weigh_scores(writer, of, parts));
  const Attended made = attended(writer, parts);
  Outputs outputs;
  const Id present = is_even ? present_of(writer, of) : kAbsent;
  outputs.push_back(heads_joined(writer, made.y, "y"));
  if (is_even) outputs.push_back(present);
  return outputs;
}

// X, positions, cosines, sines; one position alone is that of the first row.
Result<Outputs> positioned_rotary(PrimitiveWriter& writer) {
  WARPLOOM_CHECK(check_number(writer, 0, true));
  const Shape x = writer.in(0).shape;
  const Tensor& given = writer.in(1);
  if (is_float(given.dtype)) return type_error(writer, "positions of i64", given.dtype);
  if (writer.node.real("scale", 1) != 1 || writer.node.integer("is_packed_batching") != 0)
    return writer.error(kAttribute, "an embedding that scales or packs is not supported",
                        "scale 1, is_packed_batching 0", "another value");
  if (x.size() != 3 && x.size() != 4)
    return writer.error(kShape, "the input has no heads", "3 axes or 4", x);
  const int64_t rows = x.size() == 3 ? x[1] : x[2];
  Id positions = writer.raw(1);
  if (element_count(given.shape) == 1 && given.shape.size() < 2) {
    const Id first = writer.reshape(positions, {1, 1}, "first");
    const Id steps = writer.cast(writer.places({1, rows}, "step"), given.dtype, "steps");
    const Id all = writer.list({x[0], rows}, "shape");
    const Id counted =
        writer.add(writer.cast(first, writer.dtype(steps), "first"), steps, "places");
    positions = writer.make(OpKind::Expand, {counted, all}, "positions");
  }
  std::map<std::string, Attribute> attributes;
  attributes["interleaved"] = writer.node.integer("interleaved");
  int64_t size = writer.node.integer("rotary_embedding_dim");
  const Shape& cache = writer.in(2).shape;
  if (size == 0 && cache.size() == 2) size = 2 * cache[1];
  attributes["rotary_embedding_dim"] = size;
  int64_t heads = writer.node.integer("num_heads");
  // Without a number of heads those that the cache leaves.
  if (heads == 0 && x.size() == 3 && size > 0 && x[2] % size == 0) heads = x[2] / size;
  attributes["num_heads"] = heads;
  const std::vector<Id> inputs = {writer.raw(0), writer.raw(2), writer.raw(3), positions};
  return Outputs{writer.make(OpKind::RotaryEmbedding, inputs, "turned", std::move(attributes))};
}
}  // namespace warploom::graph::rewrites
