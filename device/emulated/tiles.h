// Arithmetic of the matrix units on small tiles of floats.
#pragma once

#include "calls_host.h"

namespace wl::emu {

int bytes_of(Element e);
void decode(Element e, const void* data, int count, float* out);  // int8 too: its values are exact in float
inline float truncate_tf32(float x) { return float_of(bits_of(x) & 0xffffe000u); }

// c[0..n) += sum over k of a[k] * b[k * n + 0..n); n a multiple of 8. Products of 16-bit and tf32 values are exact in float;
// the sum runs in order of k, each step rounded to float.
void accumulate_row(float* c, const float* a, const float* b, int n, int k);

}  // namespace wl::emu
