// The elementwise operations on the host, one for each row of src/base/value_ops.def. Compile with
// -ffp-contract=off.
#pragma once

namespace wl {
inline float add(float a, float b) {
  return a + b;
}

inline float sub(float a, float b) {
  return a - b;
}

inline float mul(float a, float b) {
  return a * b;
}

inline float div(float a, float b) {
  return a / b;
}

inline float max(float a, float b) {
  return (a > b || a != a) ? a : b;
}

inline float min(float a, float b) {
  return (a < b || a != a) ? a : b;
}

inline float fma(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}

inline float where(float a, float b, float c) {
  return a != 0.0f ? b : c;
}

inline float less(float a, float b) {
  return a < b ? 1.0f : 0.0f;
}

inline float equal(float a, float b) {
  return a == b ? 1.0f : 0.0f;
}

inline float neg(float a) {
  return -a;
}

inline float abs(float a) {
  return __builtin_fabsf(a);
}

inline float exp(float a) {
  return __builtin_expf(a);
}

inline float fast_exp(float a) {
  return __builtin_exp2f(a * 1.44269504f);
}

inline float exp2(float a) {
  return __builtin_exp2f(a);
}

inline float log(float a) {
  return __builtin_logf(a);
}

inline float sqrt(float a) {
  return __builtin_sqrtf(a);
}

inline float rsqrt(float a) {
  return static_cast<float>(1.0 / __builtin_sqrt(a));
}

inline float reciprocal(float a) {
  return 1.0f / a;
}

inline float tanh(float a) {
  return __builtin_tanhf(a);
}

inline float sin(float a) {
  return __builtin_sinf(a);
}

inline float cos(float a) {
  return __builtin_cosf(a);
}

inline float atan(float a) {
  return __builtin_atanf(a);
}

inline float fmod(float a, float b) {
  return __builtin_fmodf(a, b);
}

inline float bit_and(float a, float b) {
  return static_cast<float>(static_cast<int>(a) & static_cast<int>(b));
}

inline float erf(float a) {
  return __builtin_erff(a);
}

inline float relu(float a) {
  return max(a, 0.0f);
}

inline float sigmoid(float a) {
  return 1.0f / (1.0f + __builtin_expf(-a));
}

inline float floor(float a) {
  return __builtin_floorf(a);
}

inline float round_tf32(float a) {
  return float_of(tf32_bits(a));
}

inline float binade(float a) {
  const unsigned exponent = bits_of(a) & 0x7f800000u;
  const unsigned held = exponent > 0x7e800000u ? 0x7e800000u : exponent;
  return float_of(exponent < 0x00800000u ? 0x00800000u : held);
}

inline float inverse_binade(float a) {
  return float_of(0x7f000000u - bits_of(binade(a)));
}
}  // namespace wl
