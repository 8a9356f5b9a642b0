// Sums of products as tensor cores make them: neither rounded to nearest nor one after another.
//
// An instruction takes some terms at once: their exact products and the sum so far are aligned to
// the largest exponent among them, cut some digits below it, added, and the sum is cut to its type.
// Both cuts go towards zero. The exponent of a product is that of its factors together, so that its
// first digit may stand one higher. Example, 16 terms of 16 bits and a sum so far of 1 (exponent 0,
// digits down to 2^-25 count):
//
//   2^-25 + 2^-26          adds 2^-25: the last digit is cut; of 16 such terms each loses its own
//   1 + 16 · 2^-24         exact; 1 + 2^-24 is 1: the sum has 24 digits
//
// What kinds there are is measured on an H200, where random operands of every type give the same
// bits (tests/emulator/conformance_products.cpp); it agrees with Khattak and Mikaitis, "Accurate
// Models of NVIDIA Tensor Cores" (2025), by whom GPUs before sm_90 take 8 terms of 16 bits and cut
// one digit earlier. Operands that are subnormal have not been compared.
#pragma once
#include "calls.h"

namespace wl::emu {
struct CoreSum {
  int together;  // terms that an instruction adds at once
  int below;     // binary digits below the largest exponent that count
  int fraction;  // digits of a sum behind its first one
};

// Of floats. mma.sync multiplies 8-bit floats as 16-bit ones.
constexpr CoreSum core_sum_of(Element type, bool warpgroup) {
  const bool eight_bits = type == Element::e4m3 || type == Element::e5m2;
  if (warpgroup && eight_bits) return {32, 13, 13};
  return {type == Element::tf32 ? 8 : 16, 25, 23};
}

// The second factors of an instruction, [k, n] in rows, which all rows of the first are multiplied
// by; n a multiple of 8. They outlive it.
class CoreFactor {
 public:
  CoreFactor(const float* b, int k, int n);

  // c[0..n) plus the sum over k of a[k] · b[k][0..n).
  void add_row(const CoreSum& how, float* c, const float* a) const;

 private:
  static constexpr int kMost = 32 * 256;  // elements

  const float* b_;
  int k_;
  int n_;
  bool finite_;
  float powers_[kMost];  // 2 to the exponent of each, 0 of 0
};
}  // namespace wl::emu
