// Limits: what an element type can hold. Within the room only.
//
//   limits_of(Dtype::f16)   // largest 65504, step 2^-24
#pragma once
#include "base/dtype.h"

namespace warploom::verify {
// The largest number of a type, and what may be lost where numbers are too small for its digits:
// below some size it holds multiples of `step` alone. What is computed in fp32 may be flushed
// below 2^-126 on the way, and be scaled up to 2^10 times after that.
struct Limits {
  Dtype dtype;
  double largest;
  double step;
};

Limits limits_of(Dtype dtype);
}  // namespace warploom::verify
