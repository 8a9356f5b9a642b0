// Conversions between float and the element types: to nearest, ties to even; fp8 saturates to its largest finite value.
#pragma once
namespace wl {
WL_FN unsigned bits_of(float x) { return __float_as_uint(x); }
WL_FN float float_of(unsigned bits) { return __uint_as_float(bits); }

WL_FN float to_float(float x) { return x; }
WL_FN float to_float(int x) { return static_cast<float>(x); }
WL_FN float to_float(bf16 x) { return float_of(static_cast<unsigned>(x.bits) << 16); }
WL_FN float to_float(tf32 x) { return float_of(x.bits); }
WL_FN float to_float(f16 x) {
  float r;
  asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(x.bits));
  return r;
}
WL_FN float to_float(e4m3 x) {
  f16 h;
  asm("{ .reg .b32 t; .reg .b16 u; cvt.rn.f16x2.e4m3x2 t, %1; mov.b32 {%0, u}, t; }"
      : "=h"(h.bits)
      : "h"(static_cast<unsigned short>(x.bits)));
  return to_float(h);
}
WL_FN float to_float(e5m2 x) {
  f16 h;
  asm("{ .reg .b32 t; .reg .b16 u; cvt.rn.f16x2.e5m2x2 t, %1; mov.b32 {%0, u}, t; }"
      : "=h"(h.bits)
      : "h"(static_cast<unsigned short>(x.bits)));
  return to_float(h);
}

// Nearest even by integer arithmetic, since cvt.rn.tf32 needs sm_90 and cvt.rna rounds ties away. NaN and infinity pass.
WL_FN unsigned tf32_bits(float x) {
  const unsigned u = bits_of(x);
  const unsigned rounded = (u + 0xfffu + ((u >> 13) & 1u)) & 0xffffe000u;
  return (u & 0x7f800000u) == 0x7f800000u ? u : rounded;
}

template <class T>
WL_FN T cast(float x);
template <>
WL_FN float cast<float>(float x) {
  return x;
}
template <>
WL_FN int cast<int>(float x) {
  return __float2int_rz(x);
}
template <>
WL_FN bf16 cast<bf16>(float x) {
  bf16 r;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r.bits) : "f"(x));
  return r;
}
template <>
WL_FN f16 cast<f16>(float x) {
  f16 r;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r.bits) : "f"(x));
  return r;
}
template <>
WL_FN tf32 cast<tf32>(float x) {
  return tf32{tf32_bits(x)};
}
template <>
WL_FN e4m3 cast<e4m3>(float x) {
  unsigned short r;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(r) : "f"(0.0f), "f"(x));
  return e4m3{static_cast<unsigned char>(r)};
}
template <>
WL_FN e5m2 cast<e5m2>(float x) {
  unsigned short r;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(r) : "f"(0.0f), "f"(x));
  return e5m2{static_cast<unsigned char>(r)};
}

// Two neighbouring 16-bit elements at once: dst[0] from lo, dst[1] from hi, one instruction.
WL_FN void cast2(bf16* dst, float lo, float hi) {
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(*reinterpret_cast<unsigned*>(dst)) : "f"(hi), "f"(lo));
}
WL_FN void cast2(f16* dst, float lo, float hi) {
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(*reinterpret_cast<unsigned*>(dst)) : "f"(hi), "f"(lo));
}
}  // namespace wl
