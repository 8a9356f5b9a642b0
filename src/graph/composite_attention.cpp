// The rewriting of Attention and RotaryEmbedding.
#include "graph/composite_attention.h"
#include <fmt/format.h>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "graph/graph.h"
#include "graph/operators.h"
#include "graph/rules.h"

namespace warploom::graph::rewrites {
namespace {
enum Input : uint8_t { kQuery, kKey, kValue, kMask, kPastKey, kPastValue, kKeyCounts };

// Query, key and value with their heads apart, [B,H,S,D], of which the past comes first.
struct Operands {
  Id query = kAbsent;
  Id key = kAbsent;
  Id value = kAbsent;
};

Status check_types(const NodeContext& context) {
  const Dtype query = context.in(kQuery).dtype;
  const Dtype value = context.in(kValue).dtype;
  for (const size_t i : {kQuery, kKey, kValue, kPastKey, kPastValue}) {
    if (!context.has(i)) continue;
    const bool of_value = i == kValue || i == kPastValue;
    const Dtype wanted = of_value ? value : query;
    const Dtype found = context.in(i).dtype;
    if (!is_wide_float(found)) return type_error(context, "f64, f32, bf16 or f16", found);
    if (found == wanted) continue;
    const std::string expected = fmt::format("input {} of {}", i, name_of(wanted));
    return type_error(context, expected, found);
  }
  if (!context.has(kMask)) return ok();
  const Dtype mask = context.in(kMask).dtype;
  if (mask == Dtype::boolean || mask == query) return ok();
  const std::string expected = fmt::format("a mask of booleans or of {}", name_of(query));
  return type_error(context, expected, mask);
}

Result<int64_t> heads_named(const NodeContext& context, std::string_view name, int64_t columns) {
  const int64_t heads = context.node.integer(name);
  if (heads >= 1 && columns % heads == 0) return heads;
  const std::string message = fmt::format("{} does not divide the columns", name);
  const std::string expected = fmt::format("a divisor of {}", columns);
  return context.error(kAttribute, message, expected, heads);
}

Result<Operands> operands_of(PrimitiveWriter& writer) {
  const size_t rank = writer.in(kQuery).shape.size();
  const bool alike = writer.in(kKey).shape.size() == rank && writer.in(kValue).shape.size() == rank;
  if (!alike || (rank != 3 && rank != 4)) {
    const std::string found =
        fmt::format("{}, {} and {}", to_text(writer.in(kQuery).shape),
                    to_text(writer.in(kKey).shape), to_text(writer.in(kValue).shape));
    return writer.error(kShape, "query, key and value do not fit", "3 axes each, or 4", found);
  }
  Operands made{writer.raw(kQuery), writer.raw(kKey), writer.raw(kValue)};
  if (rank == 4) return made;
  const auto columns = [&](size_t i) { return writer.in(i).shape[2]; };
  WARPLOOM_TRY(const int64_t heads, heads_named(writer, "q_num_heads", columns(kQuery)));
  WARPLOOM_TRY(const int64_t key_heads, heads_named(writer, "kv_num_heads", columns(kKey)));
  WARPLOOM_TRY(const int64_t value_heads, heads_named(writer, "kv_num_heads", columns(kValue)));
  made.query = heads_apart(writer, made.query, heads, "query_heads");
  made.key = heads_apart(writer, made.key, key_heads, "key_heads");
  made.value = heads_apart(writer, made.value, value_heads, "value_heads");
  return made;
}

// The past before what is new, along the third axis.
Result<Id> with_past(PrimitiveWriter& writer, size_t input, Id now) {
  if (!writer.has(input)) return now;
  const Shape& past = writer.in(input).shape;
  Shape expected = writer.shape(now);
  const bool same_rank = past.size() == expected.size();
  if (same_rank) expected[2] = past[2];
  if (past != expected)
    return writer.error(kShape, "the past does not fit what is new", expected, past);
  return joined(writer, {writer.raw(input), now}, 2, "present");
}

Result<HeadCounts> counts_of(PrimitiveWriter& writer, const Operands& of) {
  const Shape& query = writer.shape(of.query);
  const Shape& key = writer.shape(of.key);
  const Shape& value = writer.shape(of.value);
  const bool same_keys = key[0] == value[0] && key[1] == value[1] && key[2] == value[2];
  const bool fits = same_keys && query[0] == key[0] && query[3] == key[3];
  const bool grouped = key[1] > 0 && query[1] % key[1] == 0;
  if (fits && grouped) return HeadCounts{key[0], key[1], query[1] / key[1]};
  const std::string found =
      fmt::format("{}, {} and {}", to_text(query), to_text(key), to_text(value));
  const std::string expected = "[B,H·G,S,D], [B,H,T,D] and [B,H,T,E]";
  return writer.error(kShape, "query, key and value do not fit", expected, found);
}

// The mask with four axes, and what it lacks of the keys as keys that are not seen.
Result<Id> whole_mask(PrimitiveWriter& writer, const Shape& scores) {
  const Id mask = writer.raw(kMask);
  const Shape given = writer.shape(mask);
  const auto error = [&] {
    return writer.error(kShape, "the mask does not stretch to the scores", scores, given);
  };
  if (given.empty() || given.size() > 4 || given.back() > scores[3]) return error();
  Shape four(4 - given.size(), 1);
  four = chained(four, given);
  for (size_t i = 0; i < 3; ++i)
    if (four[i] != 1 && four[i] != scores[i]) return error();
  const Id apart = writer.reshape(mask, four, "mask");
  const bool counts = writer.dtype(mask) == Dtype::boolean;
  const double unseen = counts ? 0 : -std::numeric_limits<double>::infinity();
  const Id fill = writer.scalar(unseen, mask, "unseen");
  const List none(4, 0);
  return writer.pad(apart, none, with(none, 3, scores[3] - four[3]), fill, "whole_mask");
}

Status check_attributes(const NodeContext& context) {
  for (const std::string_view side : {"left_window_size", "right_window_size"}) {
    const int64_t size = context.node.integer(side, -1);
    if (size < -1)
      return context.error(kAttribute, fmt::format("{} has an unfit value", side), "-1 or more",
                           size);
  }
  if (context.has(kPastKey) != context.has(kPastValue))
    return context.error(ErrorCode::kOnnxName, "one of past_key and past_value is missing",
                         "both or none");
  if (!context.has(kKeyCounts)) return ok();
  const Tensor& counts = context.in(kKeyCounts);
  if (context.has(kPastKey))
    return context.error(ErrorCode::kOnnxName, "nonpad_kv_seqlen beside a past", "one of them");
  const Shape wanted = {context.in(kQuery).shape[0]};
  if (counts.shape != wanted)
    return context.error(kShape, "nonpad_kv_seqlen does not fit the batch", wanted, counts.shape);
  if (counts.dtype == Dtype::i64) return ok();
  return type_error(context, "nonpad_kv_seqlen of i64", counts.dtype);
}

// What each query may see: by its place, by the mask, and by how many keys there are.
Status add_conditions(PrimitiveWriter& writer, AttentionParts& parts) {
  const Shape query = writer.shape(parts.query);
  const int64_t keys = writer.shape(parts.key)[2];
  SeenKeys seen;
  seen.queries = query[2];
  seen.keys = keys;
  seen.causal = writer.node.integer("is_causal") != 0;
  seen.left = writer.node.integer("left_window_size", -1);
  seen.right = writer.node.integer("right_window_size", -1);
  if (writer.has(kPastKey)) seen.offset = writer.in(kPastKey).shape[2];
  if (writer.has(kKeyCounts)) {
    seen.offsets = writer.reshape(writer.raw(kKeyCounts), {query[0], 1, 1, 1}, "key_counts");
    seen.offset = -query[2];
    const Id column = writer.places({1, 1, 1, keys}, "key_place");
    const Id there = writer.make(OpKind::Less, {column, seen.offsets}, "there");
    parts.kept.push_back(there);
  }
  for (const Id condition : seen_keys(writer, seen))
    parts.kept.push_back(condition);
  parts.may_see_nothing = writer.has(kMask) || seen.may_be_none();
  if (!writer.has(kMask)) return ok();
  const Shape scores = {query[0], query[1], query[2], keys};
  WARPLOOM_TRY(const Id mask, whole_mask(writer, scores));
  if (writer.dtype(mask) == Dtype::boolean)
    parts.kept.push_back(mask);
  else
    parts.added = mask;
  return ok();
}
}  // namespace

// Q, K, V, mask, past key, past value, key counts → Y, present key, present value, scores.
Result<Outputs> attention(PrimitiveWriter& writer) {
  WARPLOOM_CHECK(check_types(writer));
  WARPLOOM_TRY(Operands of, operands_of(writer));
  WARPLOOM_CHECK(check_attributes(writer));
  WARPLOOM_TRY(of.key, with_past(writer, kPastKey, of.key));
  WARPLOOM_TRY(of.value, with_past(writer, kPastValue, of.value));
  AttentionParts parts;
  WARPLOOM_TRY(parts.counts, counts_of(writer, of));
  parts.query = of.query;
  parts.key = of.key;
  parts.value = of.value;
  const auto size = as_double(writer.shape(of.query)[3]);
  parts.scale = writer.node.real("scale", 1 / std::sqrt(size));
  parts.softcap = writer.node.real("softcap");
  if (parts.softcap < 0)
    return writer.error(kAttribute, "softcap has an unfit value", "0 or more",
                        fmt::format("{}", parts.softcap));
  WARPLOOM_CHECK(add_conditions(writer, parts));
  const Attended made = attended(writer, parts);
  const bool flat = writer.in(kQuery).shape.size() == 3;
  const Id y = flat ? heads_joined(writer, made.y, "y") : made.y;
  const Id stages[] = {made.raw, made.capped, made.biased, made.chosen};
  const Id scores = stages[writer.node.integer("qk_matmul_output_mode")];
  return Outputs{y, of.key, of.value, scores};
}

namespace {
// A cache of angles as x's lines need it: rows by position, or one for each place of x.
Result<Id> angles(PrimitiveWriter& writer, size_t input, const Shape& lines, int64_t half) {
  Id cache = writer.wide(input);
  if (writer.has(3)) {
    if (writer.rank(cache) != 2)
      return writer.error(kShape, "a cache of angles is no matrix", "[positions, half]",
                          writer.shape(cache));
    const int64_t first = 0;
    cache = writer.make(OpKind::Gather, {cache, writer.raw(3)}, "angles", {{"axis", first}});
  }
  const Shape wanted = {lines[0], lines[1], half};
  const Shape found = writer.shape(cache);
  if (found == wanted) return cache;
  return writer.error(kShape, "a cache of angles does not fit the input", wanted, found);
}

Status check_rotary(const NodeContext& context) {
  WARPLOOM_CHECK(check_number(context, 0, true));
  for (const size_t i : {1, 2})
    if (context.in(i).dtype != context.in(0).dtype)
      return type_error(context, context.in(0).dtype, context.in(i).dtype);
  if (!context.has(3)) return ok();
  const Tensor& positions = context.in(3);
  const bool whole = positions.dtype == Dtype::i64 || positions.dtype == Dtype::i32;
  if (!whole) return type_error(context, "positions of i64", positions.dtype);
  if (positions.shape.size() == 2) return ok();
  return context.error(kShape, "positions are no matrix", "[B,S]", positions.shape);
}
}  // namespace

// X [B,H,S,D] or [B,S,H·D], cosines, sines, positions.
Result<Outputs> rotary_embedding(PrimitiveWriter& writer) {
  WARPLOOM_CHECK(check_rotary(writer));
  const Shape given = writer.in(0).shape;
  const bool flat = given.size() == 3;
  if (!flat && given.size() != 4)
    return writer.error(kShape, "the input has no heads", "3 axes or 4", given);
  Shape apart = given;
  if (flat) {
    WARPLOOM_TRY(const int64_t heads, heads_named(writer, "num_heads", given[2]));
    apart = {given[0], given[1], heads, given[2] / heads};
  }
  const int64_t named = writer.node.integer("rotary_embedding_dim");
  const int64_t size = named == 0 ? apart[3] : named;
  if (size < 2 || size % 2 != 0 || size > apart[3]) {
    const std::string expected = fmt::format("an even number up to {}", apart[3]);
    return writer.error(kAttribute, "an embedding cannot be turned so", expected, size);
  }
  const Shape lines = {given[0], flat ? given[1] : given[2]};
  WARPLOOM_TRY(Id cosines, angles(writer, 1, lines, size / 2));
  WARPLOOM_TRY(Id sines, angles(writer, 2, lines, size / 2));
  Shape column = {lines[0], 1, lines[1], size / 2};
  if (flat) column = {lines[0], lines[1], 1, size / 2};
  cosines = writer.reshape(cosines, column, "cosines");
  sines = writer.reshape(sines, column, "sines");
  const Id x = writer.reshape(writer.wide(0), apart, "apart");
  const bool neighbours = writer.node.integer("interleaved") != 0;
  const Id y = rotated(writer, x, cosines, sines, size, neighbours);
  return Outputs{writer.reshape(y, given, "y")};
}
}  // namespace warploom::graph::rewrites
