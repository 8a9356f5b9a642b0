// First-order running error analysis of a pointwise expression: a value with how far rounding can have moved it.
#pragma once

#include <span>

#include "graph/pointwise.h"

namespace warploom::graph {

// The magnitude of the expression's result (reference.h has the rule), given its inputs and theirs.
double magnitude_of(const Expression& expression, std::span<const double> inputs, std::span<const double> magnitudes);

}  // namespace warploom::graph
