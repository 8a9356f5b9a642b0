// Conversions that need no instruction of a device's own, for whoever has bits_of and float_of:
// those that lose nothing, tf32's, and those of elements of less than a byte.
#pragma once
#include "types.h"

namespace wl {
WL_PURE float to_float(float x) {
  return x;
}

WL_PURE float to_float(int x) {
  return static_cast<float>(x);
}

WL_PURE float to_float(long long x) {
  return static_cast<float>(x);
}

WL_PURE float to_float(signed char x) {
  return static_cast<float>(x);
}

WL_PURE float to_float(unsigned char x) {
  return static_cast<float>(x);
}

WL_PURE float to_float(short x) {
  return static_cast<float>(x);
}

WL_PURE float to_float(unsigned short x) {
  return static_cast<float>(x);
}

WL_PURE float to_float(unsigned x) {
  return static_cast<float>(x);
}

WL_PURE float to_float(unsigned long long x) {
  return static_cast<float>(x);
}

WL_PURE float to_float(bf16 x) {
  return float_of(static_cast<unsigned>(x.bits) << 16);
}

WL_PURE float to_float(tf32 x) {
  return float_of(x.bits);
}

// Nearest even; before sm_90 by integer arithmetic, since cvt.rna rounds ties away. NaN and
// infinity pass.
WL_PURE unsigned tf32_bits(float x) {
  const unsigned u = bits_of(x);
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  unsigned bits;
  asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
  return bits;
#endif
  const unsigned rounded = (u + 0xfffu + ((u >> 13) & 1u)) & 0xffffe000u;
  return (u & 0x7f800000u) == 0x7f800000u ? u : rounded;
}

template <class T> WL_PURE T cast(float x);

template <> WL_PURE float cast<float>(float x) {
  return x;
}

template <>
WL_PURE long long cast<long long>(
    float x) {  // as for all integers: towards zero, saturating, NaN 0
  constexpr long long most = 0x7fffffffffffffffll;
  if (x >= 0x1p63f) return most;
  if (x >= -0x1p63f) return static_cast<long long>(x);
  return x < 0 ? -most - 1 : 0;
}

WL_PURE int signed_byte(float x) {
  if (x >= 127) return 127;
  if (x >= -128) return static_cast<int>(x);
  return x < 0 ? -128 : 0;
}

WL_PURE int unsigned_byte(float x) {
  if (x >= 255) return 255;
  return x >= 0 ? static_cast<int>(x) : 0;
}

template <> WL_PURE short cast<short>(float x) {
  if (x >= 32767) return 32767;
  if (x >= -32768) return static_cast<short>(x);
  return x < 0 ? -32768 : 0;
}

template <> WL_PURE unsigned short cast<unsigned short>(float x) {
  if (x >= 65535) return 65535;
  return x >= 0 ? static_cast<unsigned short>(x) : 0;
}

template <> WL_PURE unsigned cast<unsigned>(float x) {
  if (x >= 0x1p32f) return 0xffffffffu;
  return x >= 0 ? static_cast<unsigned>(x) : 0;
}

template <> WL_PURE unsigned long long cast<unsigned long long>(float x) {
  if (x >= 0x1p64f) return ~0ull;
  return x >= 0 ? static_cast<unsigned long long>(x) : 0;
}

template <> WL_PURE signed char cast<signed char>(float x) {
  return static_cast<signed char>(signed_byte(x));
}

template <> WL_PURE unsigned char cast<unsigned char>(float x) {
  return static_cast<unsigned char>(unsigned_byte(x));
}

template <> WL_PURE tf32 cast<tf32>(float x) {
  return tf32{tf32_bits(x)};
}

// 8 / BITS elements to one byte, the first in the low bits.
template <int BITS, bool SIGNED> WL_PURE float unpacked(unsigned char byte, int place) {
  constexpr unsigned sign = SIGNED ? 1u << (BITS - 1) : 0u;
  const unsigned bits =
      (static_cast<unsigned>(byte) >> (place * BITS) & ((1u << BITS) - 1u)) ^ sign;
  return float_of(0x4b000000u | bits) -
         (8388608.0f + static_cast<float>(sign));  // 2^23 + bits, exactly
}

// Saturated; NaN as 0.
WL_PURE float held(float x, float low, float high) {
  if (x > low) return x < high ? x : high;
  return x == x ? low : 0.0f;
}

// x to nearest even, saturated, NaN as 0, at its place in the byte.
template <int BITS, bool SIGNED> WL_PURE unsigned packed(float x, int place) {
  constexpr float low = SIGNED ? -static_cast<float>(1 << (BITS - 1)) : 0.0f;
  constexpr float high = low + static_cast<float>((1 << BITS) - 1);
  const float in = held(x, low, high);
  return (bits_of(in + 12582912.0f) & ((1u << BITS) - 1u))
         << (place * BITS);  // 1.5 · 2^23: the integer in the low bits
}
}  // namespace wl
