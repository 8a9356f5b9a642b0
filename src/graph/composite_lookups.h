// Elements taken where data say. Private to the room.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>
#include "base/dtype.h"
#include "graph/graph.h"
#include "graph/rules.h"

namespace warploom::graph {
// Flat places among the first `axes` of x's axes, the others of which are lines: y[p..] =
// x[i(p)..]. They are computed in f32 where it holds them all: kernels have no arithmetic of i64.
//
//   Places places{writer, x, 2, {5, 7}};   x [B,H,..], the places [5,7]
//   places.add(0, rows);                   rows stretches to [5,7], of places.type
//   places.add(1);                         along the second axis each place's own coordinate
//   places.taken()                         [5,7,..]
struct Places {
  PrimitiveWriter& writer;
  Id x;
  size_t axes;
  Shape shape;  // of the places
  int64_t count = element_count(entries(writer.shape(x), 0, axes));
  Dtype type = count <= 1 << 24 ? Dtype::f32 : Dtype::i64;
  Id flat = kAbsent;

  // Along axis d of x: its coordinates along the same axis of the places, or what `index` says,
  // those below 0 counted from the end where `from_end`.
  void add(size_t d, Id index = kAbsent, bool from_end = true);
  // Along axis d of x the places' coordinates along their axis `of`.
  void add_own(size_t d, size_t of);
  Id taken();

 private:
  Id from_front(Id index, int64_t size);
};

// x with its axis replaced by what `index` says of it: y[.., j, ..] = x[.., index[.., j, ..], ..].
// The index, of any integer type or f32 and not below 0, stretches to `shape`, which is x's but for
// the axis.
Id taken_along(PrimitiveWriter& writer, Id x, size_t axis, Id index, const Shape& shape);
}  // namespace warploom::graph
