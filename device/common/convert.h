// Conversions between float and the element types in portable C++, for devices without instructions
// for it. They round to nearest, ties to even; f16 overflows to infinity, fp8 saturates to its
// largest finite value, as the GPU's cvt does.
#pragma once

namespace wl {
WL_PURE unsigned bits_of(float x) {
  return __builtin_bit_cast(unsigned, x);
}

WL_PURE float float_of(unsigned bits) {
  return __builtin_bit_cast(float, bits);
}
}  // namespace wl

#include "exact.h"

namespace wl {
// The code of x in a format of `exponent` and `mantissa` bits, without the sign; codes above
// max_code become overflow.
WL_PURE unsigned encode_small(float x, int exponent, int mantissa, unsigned max_code,
                              unsigned overflow) {
  const unsigned a = bits_of(x) & 0x7fffffffu;
  const int bias = (1 << (exponent - 1)) - 1;
  const int e = static_cast<int>(a >> 23) - 127;
  const bool normal = e >= 1 - bias;
  const int shift = 23 - mantissa + (normal ? 0 : 1 - bias - e);
  if (a < 0x00800000u || shift > 30) return 0;
  const unsigned m = (a & 0x7fffffu) | 0x800000u;
  const unsigned half = 1u << (shift - 1);
  const unsigned rest = m & ((1u << shift) - 1u);
  unsigned r = m >> shift;
  if (rest > half || (rest == half && (r & 1u))) ++r;
  const unsigned code =
      normal ? (static_cast<unsigned>(e + bias) << mantissa) + r - (1u << mantissa) : r;
  return code > max_code ? overflow : code;
}

WL_PURE float decode_small(unsigned code, int exponent, int mantissa) {
  const int bias = (1 << (exponent - 1)) - 1;
  const unsigned m = code & ((1u << mantissa) - 1u);
  const int e = static_cast<int>(code >> mantissa);
  if (e != 0) return float_of(static_cast<unsigned>(e - bias + 127) << 23 | m << (23 - mantissa));
  return static_cast<float>(m) * float_of(static_cast<unsigned>(1 - bias - mantissa + 127) << 23);
}

template <> WL_PURE int cast<int>(float x) {  // towards zero, saturating, NaN 0
  if (x >= 0x1p31f) return 0x7fffffff;
  if (x >= -0x1p31f) return static_cast<int>(x);
  return x < 0 ? -0x7fffffff - 1 : 0;
}

template <> WL_PURE bf16 cast<bf16>(float x) {
  const unsigned u = bits_of(x);
  if ((u & 0x7fffffffu) > 0x7f800000u) return bf16{0x7fff};
  return bf16{static_cast<unsigned short>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16)};
}

// Small formats; `nan` and `sign` in the type's bits, `up` how far above a float's sign is. Beyond
// the largest: infinity, NaN.
#define WL_SMALL(T, Bits, exponent, mantissa, largest, overflow, nan, sign, up)         \
  WL_PURE float to_float(T x) {                                                         \
    const unsigned a = x.bits & ~sign;                                                  \
    const unsigned fraction = a & ((1u << mantissa) - 1u);                              \
    const float r = a > largest ? float_of(0x7f800000u | fraction << (23 - mantissa))   \
                                : decode_small(a, exponent, mantissa);                  \
    return x.bits & sign ? -r : r;                                                      \
  }                                                                                     \
  template <> WL_PURE T cast<T>(float x) {                                              \
    const unsigned u = bits_of(x);                                                      \
    if ((u & 0x7fffffffu) > 0x7f800000u) return T{nan};                                 \
    return T{static_cast<Bits>(encode_small(x, exponent, mantissa, largest, overflow) | \
                               (u >> up & sign))};                                      \
  }
WL_SMALL(f16, unsigned short, 5, 10, 0x7bff, 0x7c00, 0x7fff, 0x8000u, 16)
WL_SMALL(e4m3, unsigned char, 4, 3, 0x7e, 0x7e, 0x7f, 0x80u, 24)
WL_SMALL(e5m2, unsigned char, 5, 2, 0x7b, 0x7b, 0x7f, 0x80u, 24)
#undef WL_SMALL
}  // namespace wl
