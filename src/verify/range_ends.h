// Ends of ranges: the numbers that functions are wrong at when they are wrong only somewhere.
//
// A textbook formula for acosh overflows from 1.8e19 on, one for cosh between 88.7 and 89.4, and
// what C says of powers of infinities no formula says by itself. Numbers drawn from a bell come to
// none of these. So where a graph works element by element, one more family of inputs holds them
// (input_families.def): the operators' own points, what every operator should be tried with, and
// numbers of every magnitude.
//
// What it does not cover. A sum mixes elements: one infinity hides what else it is made of. So
// graphs with contractions, convolutions, windows, reductions or scans are not judged so; they have
// families with few such numbers (coverage.h). Nor are graphs with a step (a rounding, a
// comparison, a cast to an integer) behind arithmetic that rounds, where fp32 and FP64 may honestly
// come to lie on two sides of it. An element that comes of a number which overflows between two
// operators may be anything.
#pragma once
#include "graph/graph.h"

namespace warploom::verify {
// Whether a kernel for the graph can be held to what FP64 says at the ends of its inputs' ranges.
bool is_judged_at_ends(const graph::Graph& graph);

// A rounding, a comparison, a cast to an integer.
bool is_step(const graph::Graph& graph, const graph::Node& node);
// Moves numbers, or chooses among them, and rounds none.
bool keeps_exact(const graph::Node& node);

// The numbers to try, each with both signs, as the type holds them; infinities and NaN among them.
std::vector<float> ends_for(const graph::Graph& graph, Dtype dtype);
}  // namespace warploom::verify
