// Arithmetic of the matrix units on small tiles of floats.
#pragma once
#include "calls.h"
namespace wl::emu {
// The shared-memory layouts of the copy engine and of wgmma: mode 0 none, 1 128 bytes, 2 64, 3 32.
inline int swizzle_width(int mode) { return mode ? 256 >> mode : 16; }
inline unsigned swizzled(unsigned a, int mode) {
  return mode == 1 ? swizzle<3, 4, 3>(a) : mode == 2 ? swizzle<2, 4, 3>(a) : mode == 3 ? swizzle<1, 4, 3>(a) : a;
}

constexpr int bytes_of(Element e) { return e <= Element::f16 ? 2 : e == Element::tf32 ? 4 : 1; }
void decode(Element e, const void* data, int count, float* out);  // int8 too: its values are exact in float
// One lane's A fragment, four 32-bit registers, into its places of a tile of 16 rows of 32 bytes.
void place_a(Element e, const void* registers, int lane, float* tile);
inline float truncate_tf32(float x) { return float_of(bits_of(x) & 0xffffe000u); }

// c[0..n) += sum over k of a[k] * b[k * n + 0..n); n a multiple of 8. Products of 16-bit and tf32 values are exact in float;
// the sum runs in order of k, each step rounded to float.
void accumulate_row(float* c, const float* a, const float* b, int n, int k);

// Adds a product to sums in registers, each of which for_each_sum hands over with a float of `multiply`'s. Integers are summed apart,
// exactly in float, and added as integers.
void add_product(Element type, bool accumulate, const auto& for_each_sum, const auto& multiply) {
  const bool integers = type == Element::int8;
  for_each_sum([&](void* in_register, float& sum) { sum = accumulate && !integers ? *static_cast<float*>(in_register) : 0.0f; });
  multiply();
  for_each_sum([&](void* in_register, float& sum) {
    if (!integers) *static_cast<float*>(in_register) = sum;
    else *static_cast<int*>(in_register) = (accumulate ? *static_cast<int*>(in_register) : 0) + static_cast<int>(sum);
  });
}
}  // namespace wl::emu
