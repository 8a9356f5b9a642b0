// The two passes behind ranges.h. Private to the room.
#pragma once
#include "graph/operators.h"
#include "graph/ranges.h"

namespace warploom::graph {
inline constexpr Range kAnything = {};

// Arithmetic of intervals, each end by itself; an end that is unknown stays so.
Range sum(const Range& a, const Range& b);
Range difference(const Range& a, const Range& b);
Range product(const Range& a, const Range& b);
Range negative(const Range& a);
Range times(const Range& a, double factor);

// What can be: one range a tensor, in the graph's order. `known` says more of inputs.
std::vector<Range> possible_ranges(const Graph& graph, const Ranges& known);

// What may be, given what can be.
std::vector<Range> legal_ranges(const Graph& graph, const std::vector<Range>& possible);

// Which floats become integers further on: whether they are whole matters to the last digit.
std::vector<bool> counted_floats(const Graph& graph);

// Elements of a reduced or scanned tensor that one of the result is made of.
double terms_in(const Graph& graph, const Node& node);
}  // namespace warploom::graph
