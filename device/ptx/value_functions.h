// The elementwise operations, one for each row of src/base/value_ops.def. Sums and products never
// contract: fma is explicit, so that the emulated device computes the same.
#pragma once

namespace wl {
WL_FN float add(float a, float b) {
  return __fadd_rn(a, b);
}

WL_FN float sub(float a, float b) {
  return __fsub_rn(a, b);
}

WL_FN float mul(float a, float b) {
  return __fmul_rn(a, b);
}

WL_FN float div(float a, float b) {
  return __fdiv_rn(a, b);
}

WL_FN float max(float a, float b) {
  float r;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}

WL_FN float min(float a, float b) {
  float r;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}

WL_FN float fma(float a, float b, float c) {
  return __fmaf_rn(a, b, c);
}

WL_FN float where(float a, float b, float c) {
  return a != 0.0f ? b : c;
}

WL_FN float less(float a, float b) {
  return a < b ? 1.0f : 0.0f;
}

WL_FN float equal(float a, float b) {
  return a == b ? 1.0f : 0.0f;
}

WL_FN float neg(float a) {
  return -a;
}

WL_FN float abs(float a) {
  return ::fabsf(a);
}

WL_FN float exp(float a) {
  return ::expf(a);
}

WL_FN float fast_exp(float a) {
  float e;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(__fmul_rn(a, 1.44269504f)));
  return e;
}

WL_FN float exp2(float a) {
  return ::exp2f(a);
}

WL_FN float log(float a) {
  return ::logf(a);
}

WL_FN float sqrt(float a) {
  return __fsqrt_rn(a);
}

WL_FN float rsqrt(float a) {
  return ::rsqrtf(a);
}

WL_FN float reciprocal(float a) {
  return __frcp_rn(a);
}

WL_FN float tanh(float a) {
  return ::tanhf(a);
}

// sin(a + turn * pi/2). The nearest quarter turn is found in FP64; for large a by pieces of 2/pi so
// short that their products with a are exact and whole turns drop out. CUDA's sinf keeps such
// pieces in global memory, which no candidate may have.
WL_FN float turned_sine(float a, int turn) {
  constexpr double kPieces[] = {0x1.45f306dp-1,  0x1.9391054p-30,  0x1.4fe13abp-59,
                                0x1.d1f534dp-88, 0x1.b81b6c5p-117, 0x1.5993c4p-148};
  constexpr double kQuarter = 0x1.921fb54442d18p+0;
  constexpr double kQuarterRest = 0x1.1a62633145c07p-54;
  const double x = a;
  double left;
  double quarters = 0;
  if (::fabsf(a) < 0x1p20f) {
    quarters = ::rint(x * 0x1.45f306dc9c883p-1);
    left = ::fma(-quarters, kQuarterRest, ::fma(-quarters, kQuarter, x));
  } else {
    WL_UNROLL for (int i = 0; i < 6; ++i) {
      const double part = x * kPieces[i];
      quarters += part - 4 * ::rint(part * 0.25);
    }
    left = (quarters - ::rint(quarters)) * kQuarter;
    quarters = ::rint(quarters);
  }
  turn += static_cast<int>(quarters);
  const float r = static_cast<float>(left);
  const float s = r * r;
  const float sine =
      ::fmaf(r * s, ::fmaf(s, ::fmaf(s, -1.95152959e-4f, 8.33216087e-3f), -1.66666546e-1f), r);
  const float cosine = ::fmaf(
      s, ::fmaf(s, ::fmaf(s, ::fmaf(s, 2.44331571e-5f, -1.38873163e-3f), 4.16666456e-2f), -0.5f),
      1.0f);
  const float found = turn & 1 ? cosine : sine;
  return turn & 2 ? -found : found;
}

WL_FN float sin(float a) {
  return turned_sine(a, 0);
}

WL_FN float cos(float a) {
  return turned_sine(a, 1);
}

WL_FN float atan(float a) {
  return ::atanf(a);
}

WL_FN float fmod(float a, float b) {
  return ::fmodf(a, b);
}

WL_FN float bit_and(float a, float b) {
  return static_cast<float>(static_cast<int>(a) & static_cast<int>(b));
}

WL_FN float erf(float a) {
  return ::erff(a);
}

WL_FN float relu(float a) {
  return max(a, 0.0f);
}

WL_FN float sigmoid(float a) {
  return __frcp_rn(__fadd_rn(1.0f, ::expf(-a)));
}

WL_FN float floor(float a) {
  return ::floorf(a);
}

WL_FN float round_tf32(float a) {
  return float_of(tf32_bits(a));
}

WL_FN float binade(float a) {
  return float_of(::min(::max(bits_of(a) & 0x7f800000u, 0x00800000u), 0x7e800000u));
}

WL_FN float inverse_binade(float a) {
  return float_of(0x7f000000u - bits_of(binade(a)));
}
}  // namespace wl
