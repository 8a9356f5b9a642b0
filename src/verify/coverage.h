// Coverage: which families of inputs a kernel for a graph is judged on, and what nobody promises.
//
// The finite families (bells, signs, outliers, ...) hold for every graph. Others try what lies at
// the ends of types, and hold where an honest kernel cannot differ from FP64 there:
//
//   whole_range  integers from the type's least to its largest. Not where an end is undefined:
//                quotients of the least by -1 are avoided by leaving the least out, and graphs
//                whose divisors are computed, or that make integers of floats, have none of it
//   ties         multiples of a half: equal maxima, roundings of .5. Not where a step (a rounding,
//                a comparison) stands behind arithmetic that rounds
//   magnitudes   numbers of every magnitude in every row. Not where a function bends numbers that
//                were rounded more than once, nor on tracks of fewer exponents than the inputs have
//   infinities,  a few in one of the inputs, so that most rows have none; FP64 says for every
//   nans         element whether it is a number, an infinity or NaN
//   ends         of graphs that work element by element: every other element (range_ends.h)
//   large        all numbers of some thousands, of both signs. Where magnitudes hold, and of what
//                works element by element too; also of kernels that are finite
//   level_rows   every other row is one number again and again, such as padding. Not where a step
//                stands behind arithmetic that rounds, nor where what cancels in such a row (a
//                variance) is a divisor and nothing is added to it before
//   ordered_rows rows as programs have them and no chance brings them about: ascending, descending,
//                one number among zeros, one far from the others', mostly zeros; each two alike.
//                Where level_rows hold
//
// An input carries infinities and NaN where what comes of them is IEEE's alone: not the weights of
// padded windows (0 · infinity at the border is computed by some kernels and left out by others),
// not what is multiplied with a softmax or a mask, not a scale, which may be multiplied earlier or
// later.
//
//   const Coverage all = coverage_of(graph, Track::fp32, SpecialValues::exact);
//   all.families      // {normal, uniform, …, infinities, nans} of a matmul
//   all.not_promised  // {} here; of a finite kernel what its inputs must not hold, in words
#pragma once
#include "codegen/launch_list.h"
#include "graph/ranges.h"
#include "graph/track.h"
#include "verify/inputs.h"

namespace warploom::verify {
struct Coverage {
  std::vector<InputFamily> families;
  std::vector<std::string> not_promised;
};

// `known`: of the inputs' ranges, as of ranges_of().
Coverage coverage_of(const graph::Graph& graph, Track track = Track::fp32,
                     SpecialValues promised = SpecialValues::exact,
                     const graph::Ranges& known = {});

// Which of a graph's inputs may hold infinities and NaN.
struct Carriers {
  std::vector<size_t> inputs;
  bool only_negative = false;  // of infinities: others have several right results
};

Carriers carriers_of(const graph::Graph& graph, const graph::Ranges& ranges);

// Whether rows of zeros make a divisor, or the like, zero.
bool divides_by_zeros(const graph::Graph& graph);

// Whether a range leaves a type's numbers as they are.
bool is_free(const graph::Range& range, Dtype dtype);

// Whether an integer type's least number is undefined for an operator of the graph.
bool avoids_least(const graph::Graph& graph);

// Whether zeros are divisors, or the like, of a graph that does not work element by element: what
// comes of them is no number, and hides the rest.
bool avoids_zeros(const graph::Graph& graph);
}  // namespace warploom::verify
