// The elementwise operations, one for each row of src/base/value_ops.def. Sums and products never contract: fma is explicit,
// so that the emulated device computes the same.
#pragma once
namespace wl {
WL_FN float add(float a, float b) { return __fadd_rn(a, b); }
WL_FN float sub(float a, float b) { return __fsub_rn(a, b); }
WL_FN float mul(float a, float b) { return __fmul_rn(a, b); }
WL_FN float div(float a, float b) { return __fdiv_rn(a, b); }
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
WL_FN float fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
WL_FN float where(float a, float b, float c) { return a != 0.0f ? b : c; }
WL_FN float less(float a, float b) { return a < b ? 1.0f : 0.0f; }
WL_FN float equal(float a, float b) { return a == b ? 1.0f : 0.0f; }
WL_FN float neg(float a) { return -a; }
WL_FN float abs(float a) { return ::fabsf(a); }
WL_FN float exp(float a) { return ::expf(a); }
WL_FN float exp2(float a) { return ::exp2f(a); }
WL_FN float log(float a) { return ::logf(a); }
WL_FN float sqrt(float a) { return __fsqrt_rn(a); }
WL_FN float rsqrt(float a) { return ::rsqrtf(a); }
WL_FN float reciprocal(float a) { return __frcp_rn(a); }
WL_FN float tanh(float a) { return ::tanhf(a); }
WL_FN float sin(float a) { return ::sinf(a); }
WL_FN float cos(float a) { return ::cosf(a); }
WL_FN float erf(float a) { return ::erff(a); }
WL_FN float relu(float a) { return max(a, 0.0f); }
WL_FN float sigmoid(float a) { return __frcp_rn(__fadd_rn(1.0f, ::expf(-a))); }
WL_FN float floor(float a) { return ::floorf(a); }
WL_FN float round_tf32(float a) { return float_of(tf32_bits(a)); }
}  // namespace wl
