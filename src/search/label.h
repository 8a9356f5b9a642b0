// label_of: what a region computes, in the words of the model it was cut from.
#pragma once
#include "plan/region.h"

namespace warploom::search {
// "Conv + Relu": the operators of the model `given` whose results the region of `whole` makes, in
// the model's order. `whole` is the same in primitives, in which results between may be gone; an
// operator of which nothing is left by name counts with those that read it. The region's own name
// where it makes no result that the model has.
std::string label_of(const graph::Graph& given, const graph::Graph& whole,
                     const plan::Region& region);
}  // namespace warploom::search
