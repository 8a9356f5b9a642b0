// The rewriting of ONNX Runtime's GroupQueryAttention: attention with a cache of keys and values.
//
// The cache holds P places and the node adds S. Where all T that there are then are new (a prompt),
// they stand from place 0 on; else from place seqlens_k + 1 - S on, by batch. A cache that is as
// long as what comes out, with room behind, is written at these places.
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
#include "graph/composite_attention.h"
#include "graph/composite_lookups.h"
#include "graph/composite_pieces.h"
#include "graph/graph.h"
#include "graph/operators.h"
#include "graph/rules.h"

namespace warploom::graph::rewrites {
namespace {
enum Input : uint8_t {
  kQuery,
  kKey,
  kValue,
  kPastKey,
  kPastValue,
  kLengths,
  kTotal,
  kCosines,
  kSines,
  kPositions,
  kBias,
  kSink
};

struct Cached {
  int64_t batch = 0;
  int64_t added = 0;     // S
  int64_t before = 0;    // P
  int64_t total = 0;     // T, the largest of the batch
  int64_t heads = 0;     // of queries
  int64_t shared = 0;    // of keys
  int64_t size = 0;      // of a head
  Id past = kAbsent;     // how many come before, [B,1,1,1] of i64; kAbsent: none
  Id lengths = kAbsent;  // how many there are with the new ones, likewise

  int64_t places() const { return std::max(before, total); }
};

Status check_inputs(const PrimitiveWriter& writer) {
  WARPLOOM_CHECK(check_given(writer, {kQuery, kLengths, kTotal}));
  for (const size_t i :
       {kQuery, kKey, kValue, kPastKey, kPastValue, kCosines, kSines, kBias, kSink})
    if (writer.has(i) && writer.in(i).dtype != writer.in(kQuery).dtype)
      return type_error(writer, writer.in(kQuery).dtype, writer.in(i).dtype);
  WARPLOOM_CHECK(check_number(writer, kQuery, true));
  if (writer.has(kKey) != writer.has(kValue) || writer.has(kPastKey) != writer.has(kPastValue))
    return writer.error(ErrorCode::kOnnxName, "keys without values, or the other way round",
                        "both or none");
  for (const size_t i : {kQuery, kKey, kValue})
    if (writer.has(i) && writer.in(i).shape.size() != 3)
      return writer.error(kShape, "query, key and value are in rows", "[B,S,H·D]",
                          writer.in(i).shape);
  const Shape& lengths = writer.in(kLengths).shape;
  const int64_t batch = writer.in(kQuery).shape[0];
  if (element_count(lengths) == batch) return ok();
  return writer.error(kShape, "seqlens_k does not fit the batch", Shape{batch}, lengths);
}

Result<Cached> cached(PrimitiveWriter& writer) {
  WARPLOOM_CHECK(check_inputs(writer));
  Cached of;
  of.heads = writer.node.integer("num_heads");
  of.shared = writer.node.integer("kv_num_heads");
  const Shape query = writer.in(kQuery).shape;
  const int64_t columns = of.heads + (writer.has(kKey) ? 0 : 2 * of.shared);
  const bool divides = of.heads > 0 && of.shared > 0 && of.heads % of.shared == 0;
  if (!divides || query[2] % columns != 0)
    return writer.error(kAttribute, "num_heads and kv_num_heads do not divide the columns",
                        fmt::format("divisors of {}", query[2]),
                        fmt::format("{} and {}", of.heads, of.shared));
  of.batch = query[0];
  of.added = query[1];
  of.size = query[2] / columns;
  if (writer.has(kPastKey)) {
    const Shape& past = writer.in(kPastKey).shape;
    const bool fits = past.size() == 4 && past == writer.in(kPastValue).shape &&
                      past[0] == of.batch && past[1] == of.shared && past[3] == of.size;
    if (!fits)
      return writer.error(kShape, "the past does not fit what is new",
                          fmt::format("[{},{},P,{}]", of.batch, of.shared, of.size), past);
    of.before = past[2];
  }
  const auto total = constant_scalar(writer.graph, writer.raw(kTotal));
  if (!total)
    return writer.error(ErrorCode::kOnnxDynamicShape,
                        "total_sequence_length is not known from the model", "a constant scalar",
                        writer.in(kTotal), "export the model with fixed shapes");
  of.total = as_int64(*total);
  if (of.total < of.added || of.total > of.before + of.added)
    return writer.error(kShape, "total_sequence_length does not fit what there is",
                        fmt::format("{} to {}", of.added, of.before + of.added), of.total);
  const Id whole = writer.cast(writer.raw(kLengths), Dtype::i64, "lengths");
  const Id apart = writer.reshape(whole, {of.batch, 1, 1, 1}, "lengths");
  of.lengths = writer.add(apart, writer.scalar(1, apart, "one"), "all_lengths");
  if (of.total == of.added) return of;
  const Id added = writer.scalar(as_double(of.added), apart, "added");
  of.past = writer.sub(of.lengths, added, "past_lengths");
  return of;
}

// Heads apart, turned by their positions where the node asks for it.
Result<Id> turned_heads(PrimitiveWriter& writer, const Cached& of, Id rows, int64_t heads,
                        std::string_view what) {
  if (writer.shape(rows)[2] != heads * of.size)
    return writer.error(kShape, "keys or values do not fit the heads",
                        fmt::format("[B,S,{}]", heads * of.size), writer.shape(rows));
  if (writer.node.integer("do_rotary") == 0) return heads_apart(writer, rows, heads, what);
  if (!writer.has(kCosines) || !writer.has(kSines))
    return writer.error(ErrorCode::kOnnxName, "what is turned lacks its angles",
                        "cos_cache and sin_cache", "nothing");
  const Shape& cache = writer.in(kCosines).shape;
  if (cache.size() != 2)
    return writer.error(kShape, "a cache of angles is no matrix", "[positions, half]", cache);
  const int64_t turned = 2 * cache[1];
  Id positions = writer.places({1, of.added}, "step");
  if (of.past != kAbsent) {
    const Id first = writer.reshape(of.past, {of.batch, 1}, "first");
    positions = writer.add(positions, first, "positions");
  }
  if (writer.has(kPositions) && of.past != kAbsent) positions = writer.raw(kPositions);
  const Id all = writer.list({of.batch, of.added}, "shape");
  positions = writer.make(OpKind::Expand, {positions, all}, "positions");
  const std::map<std::string, Attribute> attributes = {
      {"num_heads", heads},
      {"rotary_embedding_dim", turned},
      {"interleaved", writer.node.integer("rotary_interleaved")}};
  const std::vector<Id> inputs = {rows, writer.raw(kCosines), writer.raw(kSines), positions};
  const Id y = writer.make(OpKind::RotaryEmbedding, inputs, what, attributes);
  return heads_apart(writer, y, heads, what);
}

Id with_room(PrimitiveWriter& writer, Id past, int64_t places, Id zero) {
  const List none(4, 0);
  const int64_t more = places - writer.shape(past)[2];
  return writer.pad(past, none, with(none, 2, more), zero, "room");
}

// The cache with what is new in its place: [B,H,places,D].
Id written(PrimitiveWriter& writer, const Cached& of, size_t past, Id now, std::string_view what) {
  const Shape whole = {of.batch, of.shared, of.places(), of.size};
  const Id zero = writer.scalar(0, now, "zero");
  const List none(4, 0);
  if (of.past == kAbsent) {
    if (of.before <= of.added)
      return writer.pad(now, none, with(none, 2, of.places() - of.added), zero, what);
    const Id rest = part_of(writer, writer.raw(past), 2, of.added, of.before, "rest");
    return joined(writer, {now, rest}, 2, what);
  }
  const Id room = with_room(writer, writer.raw(past), of.places(), zero);
  const Id column = writer.places({1, 1, of.places(), 1}, "place");
  const Id off = writer.sub(column, of.past, "off");
  const Id first = writer.scalar(0, off, "first");
  const Id last = writer.scalar(as_double(of.added - 1), off, "last");
  const Id behind = writer.make(OpKind::GreaterOrEqual, {off, first}, "behind_past");
  const Id within = writer.make(OpKind::LessOrEqual, {off, last}, "before_end");
  const Id is_new = writer.make(OpKind::And, {behind, within}, "is_new");
  Id laid = now;  // one row stretches
  if (of.added > 1) {
    const Id index = writer.make(OpKind::Clip, {off, first, last}, "index");
    laid = taken_along(writer, now, 2, index, whole);
  }
  return writer.where(is_new, laid, room, what);
}
}  // namespace

// query, key, value, past key and value, lengths, their largest, cosines, sines, positions, score
// bias, sinks → Y, present key and value.
Result<Outputs> group_query_attention(PrimitiveWriter& writer) {
  WARPLOOM_TRY(const Cached of, cached(writer));
  const int64_t own = of.heads * of.size;
  const int64_t each = of.shared * of.size;
  Id query = writer.raw(kQuery);
  Id key = writer.raw(kKey);
  Id value = writer.raw(kValue);
  if (key == kAbsent) {
    const Id all = query;
    query = part_of(writer, all, 2, 0, own, "query");
    key = part_of(writer, all, 2, own, own + each, "key");
    value = part_of(writer, all, 2, own + each, own + 2 * each, "value");
  }
  WARPLOOM_TRY(query, turned_heads(writer, of, query, of.heads, "query_heads"));
  WARPLOOM_TRY(key, turned_heads(writer, of, key, of.shared, "key_heads"));
  if (writer.shape(value) != Shape{of.batch, of.added, each})
    return writer.error(kShape, "the values do not fit the keys", Shape{of.batch, of.added, each},
                        writer.shape(value));
  value = heads_apart(writer, value, of.shared, "value_heads");
  AttentionParts parts;
  parts.counts = {of.batch, of.shared, of.heads / of.shared};
  parts.query = query;
  parts.key = written(writer, of, kPastKey, key, "present_key");
  parts.value = written(writer, of, kPastValue, value, "present_value");
  const double scale = writer.node.real("scale");
  parts.scale = scale != 0 ? scale : 1 / std::sqrt(as_double(of.size));
  parts.softcap = writer.node.real("softcap");
  SeenKeys seen;
  seen.queries = of.added;
  seen.keys = of.places();
  seen.offsets = of.past;
  seen.causal = writer.node.integer("causal") != 0;
  seen.left = writer.node.integer("local_window_size");
  parts.kept = seen_keys(writer, seen);
  if (!seen.causal) {
    const Id column = writer.places({1, 1, 1, of.places()}, "key_place");
    parts.kept.push_back(writer.make(OpKind::Less, {column, of.lengths}, "there"));
  }
  parts.may_see_nothing = seen.may_be_none();
  if (writer.has(kBias)) {
    const Shape bias = writer.in(kBias).shape;
    const bool fits = bias.size() == 4 && bias[2] == of.added && bias[3] == of.total &&
                      (bias[0] == 1 || bias[0] == of.batch) &&
                      (bias[1] == 1 || bias[1] == of.heads);
    if (!fits)
      return writer.error(kShape, "the bias does not stretch to the scores",
                          Shape{of.batch, of.heads, of.added, of.total}, bias);
    const List none(4, 0);
    const Id zero = writer.scalar(0, writer.raw(kBias), "zero");
    const List behind = with(none, 3, of.places() - of.total);
    parts.added = writer.pad(writer.raw(kBias), none, behind, zero, "bias");
    parts.may_see_nothing = true;
  }
  if (writer.has(kSink)) {
    WARPLOOM_CHECK(check_vector(writer, kSink, of.heads));
    parts.sink = writer.reshape(writer.raw(kSink), {1, of.heads, 1, 1}, "sink");
  } else if (writer.node.integer("smooth_softmax") == 1) {
    parts.sink = writer.constant(writer.in(kQuery).dtype, {1, 1, 1, 1}, {0}, "sink");
  }
  const Attended made = attended(writer, parts);
  return Outputs{heads_joined(writer, made.y, "y"), parts.key, parts.value};
}
}  // namespace warploom::graph::rewrites
