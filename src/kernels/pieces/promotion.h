// Promotion: how the fp32 track's long sums stay within it (verify/tolerance.h), whatever their
// length. Sums are made in parts, which are added up in fp32 registers.
//
// Words: u is 2^-24. The track allows 8 u of the result's norm where all terms have one sign; a sum
// that cancels is allowed more, by the norm of its magnitudes.
//
// Additions that round to nearest. Of n additions the i-th rounds about i / n of the sum, by 0.29
// of a unit in the last place, a root mean square; such a unit is 1.44 u of a number on average.
// Signs differ, so that squares add up:
//
//   error = 0.29 · 1.44 u · √(n / 3) = 0.24 √n u      64 additions 1.9 u, 256 3.9 u, 1024 7.7 u
//
// Products on tensor cores. An instruction aligns its exact products and the sum so far to the
// largest exponent e among them, cuts what lies below 2^(e - 25), adds, and cuts the sum to 24
// bits: always towards zero, so that the losses of a part add up. Products of 11 by 11 bits reach
// 20 or 21 bits below their exponent: a sum of few of them loses nothing but its last cut, one of
// many half a unit of 2^(e - 25) for each of the 16. Fp16x3, terms of one sign, by the depth of a
// part, computed by that rule, which an H200 keeps to the bit (device/emulated/tensor_core.h):
//
//   depth of a part    16    32    48    64    96    144
//   lost, in u        0.9   1.4   2.0   3.0   5.5   10
//
// Compensation. What an addition of a part to the sum loses is itself an fp32 number, and is what
// the next part begins with, in the same registers: of all additions only the last one's rounding
// remains, so that the error is that of a part, however many there are (after Kahan, 1965).
//
//   sum 1, part 2^-25: the sum stays 1, the next part begins with 2^-25
//
// Worst are sums just above a power of two, of which a unit is 1.4 times that on average: of parts
// of 96 terms they lose 7.7 u, so that few of these are added plainly. Parts of 64 lose 4.2 u, and
// 128 plain additions 2.7 · 1.4 u, together 5.6 u: the squares add up.
#pragma once
#include <cstdint>
#include "kernels/kernel_builder.h"

namespace warploom::kernels::promotion {
// Terms of a sum of split operands that tensor cores add up before its promotion.
inline constexpr int64_t kDeepestPart = 96;
// Fused multiply-adds one after another before their sum is promoted.
inline constexpr int64_t kLongestChain = 256;

// Whether the additions of so many parts are compensated.
inline bool compensates(int64_t parts, int64_t depth) {
  return parts > (depth > 64 ? 16 : 128);
}

// Whether sums that overflow stay infinite.
enum class Overflow {
  stays,    // infinite: what is lost of them counts as 0
  unasked,  // infinite or NaN, a few operations cheaper
};

// sum ← sum + part; part ← what that lost, with which the next part begins. `total` is a register
// tensor of their shape.
void add_compensated(tile::Builder& b, TensorId sum, TensorId part, TensorId total,
                     Overflow overflow);
}  // namespace warploom::kernels::promotion
