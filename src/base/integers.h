// 64-bit two's complement arithmetic, in which elements of every integer type are computed. It is
// exact where doubles are not (2^53 + 1).
//
// Addition, subtraction and multiplication wrap. Division truncates towards zero; division by 0
// gives 0. Elements of u64 are the numbers of 64 bits with the same bits, so that what is beyond
// 2^63 is below 0: they add, subtract and multiply as they should, and have no order. Stores to a
// narrower type wrap; a store to boolean gives 1 for every number but 0.
//
//   apply_integers(ValueOp::add, INT64_MAX, 1)     INT64_MIN
//   apply_integers(ValueOp::div, -7, 2)            -3
//   apply_integers(ValueOp::bit_and, 6, -4)        4
//   wrapped_integer(Dtype::u8, 300)                44
#pragma once
#include "base/dtype.h"
#include "base/value_op.h"

namespace warploom {
// Loads element `index` of a packed array; stores it, wrapped. Expects is_integer(dtype).
int64_t load_integer(Dtype dtype, const void* data, int64_t index);
void store_integer(Dtype dtype, void* data, int64_t index, int64_t value);

// `value` wrapped to the type: what a store followed by a load gives.
int64_t wrapped_integer(Dtype dtype, int64_t value);

// `value` truncated towards zero and saturated to the range of an integer type; NaN gives 0.
int64_t saturated_integer(Dtype dtype, double value);

// Whether the operation is defined on integers: add is, exp is not.
bool has_integers(ValueOp op);

// The result of the operation; 0 if it is not defined on integers.
int64_t apply_integers(ValueOp op, int64_t a, int64_t b = 0, int64_t c = 0);
}  // namespace warploom
