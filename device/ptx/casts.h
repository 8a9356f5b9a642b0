// Conversions between float and the element types: to nearest, ties to even; fp8 saturates to its
// largest finite value.
#pragma once

namespace wl {
WL_FN unsigned bits_of(float x) {
  return __float_as_uint(x);
}

WL_FN float float_of(unsigned bits) {
  return __uint_as_float(bits);
}
}  // namespace wl

#include "exact.h"

namespace wl {
WL_FN float to_float(f16 x) {
  float r;
  asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(x.bits));
  return r;
}

template <> WL_FN int cast<int>(float x) {
  return __float2int_rz(x);
}

template <> WL_FN bf16 cast<bf16>(float x) {
  bf16 r;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r.bits) : "f"(x));
  return r;
}

template <> WL_FN f16 cast<f16>(float x) {
  f16 r;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r.bits) : "f"(x));
  return r;
}

// 8-bit floats are converted in pairs: the low one of two, beside a zero.
#define WL_FP8(T)                                                                        \
  WL_FN float to_float(T x) {                                                            \
    f16 h;                                                                               \
    asm("{ .reg .b32 t; .reg .b16 u; cvt.rn.f16x2." #T "x2 t, %1; mov.b32 {%0, u}, t; }" \
        : "=h"(h.bits)                                                                   \
        : "h"(static_cast<unsigned short>(x.bits)));                                     \
    return to_float(h);                                                                  \
  }                                                                                      \
  template <> WL_FN T cast<T>(float x) {                                                 \
    unsigned short r;                                                                    \
    asm("cvt.rn.satfinite." #T "x2.f32 %0, %1, %2;" : "=h"(r) : "f"(0.0f), "f"(x));      \
    return T{static_cast<unsigned char>(r)};                                             \
  }
WL_FP8(e4m3)
WL_FP8(e5m2)
#undef WL_FP8
}  // namespace wl
