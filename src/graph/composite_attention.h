// Attention as primitives, whoever asks for it: ONNX's operator and those of ONNX Runtime. Private
// to the room.
//
// Idea. Heads stand apart from one another as batches of products. Query heads that share a key
// head are a further axis, along which the keys stretch: nothing is repeated in memory.
//
//   scores = softcap(scale · query · keyᵀ) + added, -inf where one of `kept` is false
//   y      = softmax(scores) · value
//
// Worked example: 8 query heads over 2 key heads, 16 queries of 64 numbers, 20 keys:
//
//   query [B,2,4,16,64] · key [B,2,1,64,20] → scores [B,2,4,16,20]; · value [B,2,1,20,64]
//
// Where each query head has its own keys there is no such axis: [B,H,S,D]. A query that sees no key
// makes zeros. 16-bit operands are multiplied as they are; what lies between is f32.
#pragma once
#include <cstdint>
#include <vector>
#include "graph/graph.h"
#include "graph/rules.h"

namespace warploom::graph {
struct HeadCounts {
  int64_t batch = 1;
  int64_t heads = 1;   // of keys and values
  int64_t groups = 1;  // query heads that share one

  // The axes before a matrix: [batch, heads], with the groups where there are several.
  Shape outer(bool stretches = false) const {
    if (groups == 1) return {batch, heads};
    return {batch, heads, stretches ? 1 : groups};
  }
};

struct AttentionParts {
  Id query = kAbsent;  // [B, heads · groups, S, D]
  Id key = kAbsent;    // [B, heads, T, D]
  Id value = kAbsent;  // [B, heads, T, E]
  HeadCounts counts;
  double scale = 1;
  double softcap = 0;  // 0: none
  Id added = kAbsent;  // stretches to [B, heads · groups, S, T]; of 4 axes
  std::vector<Id> kept = {};
  Id sink = kAbsent;  // [1, heads · groups, 1, 1]: a score more for each head, which no key has
  bool may_see_nothing = false;  // some query, no key
};

struct Attended {
  Id y = kAbsent;       // [B, heads · groups, S, E]
  Id raw = kAbsent;     // scores as they are multiplied and scaled, [B, heads · groups, S, T]
  Id capped = kAbsent;  // behind the softcap
  Id biased = kAbsent;  // behind what is added and kept
  Id chosen = kAbsent;  // behind the softmax
};

Attended attended(PrimitiveWriter& writer, const AttentionParts& parts);

// Which keys a query sees by its place: the query of row i stands at place offset + i, key j at j.
struct SeenKeys {
  int64_t queries = 0;
  int64_t keys = 0;
  int64_t offset = 0;
  Id offsets = kAbsent;  // one for each batch, [B,1,1,1] of i64, added to the offset
  bool causal = false;   // none behind its place
  int64_t left = -1;     // at most so many before its place; -1: all
  int64_t right = -1;

  // Some query may see none.
  bool may_be_none() const;
};

// The conditions, of four axes each; none where every query sees every key.
std::vector<Id> seen_keys(PrimitiveWriter& writer, const SeenKeys& seen);

// x [B,S,H·D] as [B,H,S,D]; and back.
Id heads_apart(PrimitiveWriter& writer, Id x, int64_t heads, std::string_view what);
Id heads_joined(PrimitiveWriter& writer, Id x, std::string_view what);

// x's lines of numbers, the first `size` of each turned by angles whose cosines and sines are
// given, half as many, stretching to x's lines. Pairs are neighbours, or halves apart.
Id rotated(PrimitiveWriter& writer, Id x, Id cosines, Id sines, int64_t size, bool neighbours);

// Elements [begin, end) of an axis, every step-th.
Id part_of(PrimitiveWriter& writer, Id x, size_t axis, int64_t begin, int64_t end,
           std::string_view what, int64_t step = 1);
Id joined(PrimitiveWriter& writer, std::vector<Id> parts, size_t axis, std::string_view what);
}  // namespace warploom::graph
