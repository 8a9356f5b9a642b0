// The normal form of a nest (nest.h says what that is). Used by nest.cpp alone.
#pragma once
#include "kernels/nest.h"
namespace warploom::kernels {
// Of a nest whose affine coordinates may lack trailing steps and whose values do not know along what they vary.
Nest normal_form(Nest nest);
}  // namespace warploom::kernels
