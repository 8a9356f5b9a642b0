// AxisBuilder: the axes of a nest while it is built, and coordinates along them.
//
// Axes are asked for one after another, the same ones whenever a graph is read. Where a Reshape
// meets an axis that runs over several of its dimensions, the axis must be split: the split is
// noted, and the graph is read again from the start. Worked example, an output [12] that is a
// Reshape of [4,3]:
//
//   first reading    axis 0 of 12: i0 has no digits in [4,3] by constant steps
//                    → splits {0: {4, 3}}
//   second reading   axes 0 and 1 of 4 and 3: the output's coordinate is 3·i0 + i1,
//                    its digits are {i0, i1}
#pragma once
#include <map>
#include <optional>
#include "graph/graph.h"
#include "loopnest/affine.h"

namespace warploom::loopnest {
// By the number of the request: the sizes, outermost first, that the axis is made of.
using AxisSplits = std::map<int, graph::Shape>;

class AxisBuilder {
 public:
  // `axes` gains the sizes of new axes.
  AxisBuilder(std::vector<int64_t>& axes, AxisSplits& splits) : axes_(axes), splits_(splits) {}

  // The coordinate that takes the values 0 … size - 1 along a new axis, or along the axes that it
  // is split into; 0 where the size is 1.
  Affine add_axis(int64_t size);

  bool too_many() const { return too_many_; }  // axes were refused

  bool split_requested() const { return split_requested_; }

  // The digits of `flat` in the mixed radix of `sizes`, as coordinates. Nothing where they are not
  // affine; a split that would make them so is requested.
  std::optional<Coordinates> digits(const Affine& flat, const graph::Shape& sizes);

  // Whether a coordinate stays in [begin, end).
  bool lies_in(const Affine& coordinate, int64_t begin, int64_t end) const;
  // Whether coordinates never leave a shape.
  bool in_bounds(const Coordinates& coordinates, const graph::Shape& shape) const;
  // Whether a coordinate takes every value below `size` exactly once.
  bool covers(const Affine& coordinate, int64_t size) const;

 private:
  void request_split(size_t axis, int64_t inner);

  // Which request an axis is a part of.
  struct Origin {
    int request;
    size_t part;
  };

  std::vector<int64_t>& axes_;
  AxisSplits& splits_;
  std::vector<Origin> origins_;  // by axis
  int requests_ = 0;
  bool too_many_ = false;
  bool split_requested_ = false;
};
}  // namespace warploom::loopnest
