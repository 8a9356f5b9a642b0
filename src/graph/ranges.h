// Ranges: which numbers a tensor's elements may be, as far as the operators that read it say.
//
// Most tensors may hold anything. Not so an index: a Gather from an axis of n elements knows those
// from -n to n - 1, of which the negative ones count from the end. Nor does a divisor of integers
// hold 0, or a variance less than 0. Whoever makes inputs for a graph by chance must know that,
// also where views, casts and arithmetic stand between the input and the operator that minds, and
// where only a part of the graph is at hand.
//
// Two passes over intervals, each exact enough to be of use and never wrong about what is legal:
//
//   what can be    from the inputs on: constants hold what they hold, a comparison makes 0 or 1, a
//                  sum of k such 0 to k, an ArgMax the places of its axis
//   what may be    from the outputs back: a Gather's indices, and what whoever makes them must be
//                  given so that they are that
//
// A tensor's range is what both allow. Worked example, positions from a mask of 8 tokens for a
// table of 16 rows:
//
//   sum = CumSum(mask)        mask [8] i64
//   at = Sub(sum, 1)
//   y = Gather(table, at)     at: -16 to 15   sum: -15 to 16   mask: whole numbers from -1 to 2
//
// The range of every region's inputs is found in the whole graph, and given along with the region
// (`known`): of numbers that another region makes it says what they can be there.
#pragma once
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include "graph/graph.h"

namespace warploom::graph {
struct Range {
  double low = -HUGE_VAL;
  double high = HUGE_VAL;
  bool whole = false;    // whole numbers only
  bool nonzero = false;  // any of them but 0

  bool operator==(const Range&) const = default;

  bool is_empty() const { return !(low <= high); }

  bool is_bounded() const { return std::isfinite(low) && std::isfinite(high); }

  bool is_point() const { return low == high; }

  bool holds(const Range& other) const { return low <= other.low && other.high <= high; }
};

Range meet(const Range& a, const Range& b);  // what both allow
Range hull(const Range& a, const Range& b);  // the smallest that allows what either does
std::string to_text(const Range& range);     // "whole numbers from -5 to 4, not 0"

// By the tensor's name. A tensor without one may hold whatever its type does.
using Ranges = std::map<std::string, Range, std::less<>>;

// Of all tensors of a graph, composites or not; `known` holds of its inputs beforehand. Names of
// what is no integer only where an operator restricts it: numbers that happen to be whole are none.
Ranges ranges_of(const Graph& graph, const Ranges& known = {});

// The range of one tensor, which says nothing where there is none.
Range range_in(const Ranges& ranges, std::string_view name);
}  // namespace warploom::graph
