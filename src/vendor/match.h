// match: which calls of libraries compute a graph, without asking any library.
//
//   const Problem problem = match(graph, Track::fp32);
//   words_of(problem.steps)   // "convolution + add + relu, pooling"
//
// The nodes are taken in order. Those that only move elements become places (problem.h); every
// other one becomes a step, or goes into the step before it when it is elementwise and alone reads
// what that writes. Operators without a row in the table of match.cpp become steps of kind
// `unmatched`.
//
// A region of a search is made of primitives, which say less than the operators they came from (a
// layer normalisation is sums and products there). So the operators themselves are looked up in the
// graph as it was given, by the names of tensors (operators_of), and both are matched.
#pragma once
#include <optional>
#include "vendor/places.h"

namespace warploom::vendor {
// Whether functions of one tensor go into the step before them, or are steps of their own: where a
// library has the step and not the function, plain kernels do the rest.
enum class Functions : uint8_t { fused, apart };

// Never fails: what has no call is unmatched.
VendorProblem match(graph::Graph graph, Track track, Functions functions = Functions::fused);

// The part of `given` that computes `region`, whose tensor i is called names[i] there, under the
// region's own names. Nothing where a tensor of the region's is none of the graph's.
std::optional<graph::Graph> operators_of(const graph::Graph& given, const graph::Graph& region,
                                         const std::vector<std::string>& names);

// Of a region in primitives and, where there are, the operators behind it: whichever leaves less
// unmatched, and of equals the shorter one.
VendorProblem match_region(const graph::Graph& region, const std::optional<graph::Graph>& operators,
                           Track track);

// How many of its steps no library has a call for.
int unmatched_of(const VendorProblem& problem);
}  // namespace warploom::vendor
