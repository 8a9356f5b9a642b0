// Whole numbers of 64 bits in two's complement: what integers of every type are computed with.
//
// Every element of an integer type is such a number, also those that a double cannot hold
// (2^53 + 1). Sums, differences and products wrap; a quotient is cut towards zero, by 0 it is 0;
// what is stored in a narrower type wraps as that type does, in a boolean it is whether it is 0.
//
//   apply_integers(ValueOp::add, INT64_MAX, 1)     INT64_MIN
//   apply_integers(ValueOp::div, -7, 2)            -3
//   wrapped_integer(Dtype::u8, 300)                44
#pragma once
#include "base/dtype.h"
#include "base/value_op.h"

namespace warploom {
// Element `index` of a packed array of an integer type of whole bytes, and back, wrapped.
int64_t load_integer(Dtype dtype, const void* data, int64_t index);
void store_integer(Dtype dtype, void* data, int64_t index, int64_t value);

// What storing in the type and loading again gives.
int64_t wrapped_integer(Dtype dtype, int64_t value);

// The nearest number of an integer type to a double, fractions cut; NaN is 0.
int64_t saturated_integer(Dtype dtype, double value);

// Whether the operation has a meaning on whole numbers, as exp has not.
bool has_integers(ValueOp op);

// That meaning; 0 for an operation without one.
int64_t apply_integers(ValueOp op, int64_t a, int64_t b = 0, int64_t c = 0);
}  // namespace warploom
