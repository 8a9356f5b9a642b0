// Boxes: a range along every axis of a tensor. Which part of its inputs a part of an output needs
// is a box, too. Private to the room.
//
//   y = x[5:1:-2, :] of x [6,8]: the box {begin [1,0], size [1,8]} of y, row 1, is read from row 3
//   of x, {begin [3,0], size [1,8]}
//
// A box may hold more than is needed: it is the smallest that holds all that is.
#pragma once
#include <cstdint>
#include <vector>
#include "graph/graph.h"
#include "graph/operators.h"

namespace warploom::graph {
struct Box {
  Shape begin;
  Shape size;
  bool operator==(const Box&) const = default;
};

Box whole(const Shape& shape);
int64_t volume(const Box& box);  // elements
// The coordinates of the element of flat index `flat`.
std::vector<int64_t> coordinates_of(const Shape& shape, int64_t flat);
// The smallest box that holds both.
Box hull(const Box& a, const Box& b);
// The smallest box of `to` that holds the elements of `box` of `from` under the same flat order.
Box reshaped(const Box& box, const Shape& from, const Shape& to);
// What box `out` of an output reads of an input of shape `in`; it may leave the input.
Box reach(const AxisSources& sources, const Shape& in, const Box& out);
// The part of `box` that a tensor of shape `in` has.
Box inside(Box box, const Shape& in);
}  // namespace warploom::graph
