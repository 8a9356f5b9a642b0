// What plain kernels of both engines are written in: element types and the value operations
// (base/value_ops.def), on Real, which is float or double. Before it come `using Real` and the
// engine's own head. Nothing is shared with emitted kernels.
struct bf16 { unsigned short bits; };
struct e4m3 { unsigned char bits; };
struct e5m2 { unsigned char bits; };
FUNCTION Real infinity() { return static_cast<Real>(float_of(0x7f800000u)); }
FUNCTION double load(double x) { return x; }
FUNCTION float load(float x) { return x; }
FUNCTION Real load(long long x) { return static_cast<Real>(x); }
FUNCTION Real load(int x) { return static_cast<Real>(x); }
FUNCTION Real load(signed char x) { return static_cast<Real>(x); }
FUNCTION Real load(unsigned char x) { return static_cast<Real>(x); }
FUNCTION float load(bf16 x) { return float_of(unsigned(x.bits) << 16); }
FUNCTION float small_float(unsigned sign, unsigned exponent, unsigned mantissa, int bits,
                           int bias) {
  const float least = float_of(unsigned(128 - bias - bits) << 23);
  float value = float(mantissa) * least;
  if (exponent != 0) value = float_of((exponent + 127 - bias) << 23 | mantissa << (23 - bits));
  return sign ? -value : value;
}
FUNCTION float load(e4m3 x) {
  if ((x.bits & 0x7f) == 0x7f) return float_of(0x7fc00000u);
  return small_float(x.bits >> 7, x.bits >> 3 & 15, x.bits & 7, 3, 7);
}
FUNCTION float load(e5m2 x) {
  if ((x.bits >> 2 & 31) == 31) {
    if (x.bits & 3) return float_of(0x7fc00000u);
    const float infinite = float_of(0x7f800000u);
    return x.bits >> 7 ? -infinite : infinite;
  }
  return small_float(x.bits >> 7, x.bits >> 2 & 31, x.bits & 3, 2, 15);
}
FUNCTION void store(double* p, Real x) { *p = x; }
FUNCTION void store(float* p, Real x) { *p = static_cast<float>(x); }
FUNCTION void store(long long* p, Real x) { *p = static_cast<long long>(x); }
FUNCTION void store(int* p, Real x) { *p = static_cast<int>(static_cast<long long>(x)); }
FUNCTION void store(signed char* p, Real x) {
  *p = static_cast<signed char>(static_cast<long long>(x));
}
FUNCTION void store(unsigned char* p, Real x) {
  *p = static_cast<unsigned char>(static_cast<long long>(x));
}
FUNCTION void store(bf16* p, Real value) {
  const float x = static_cast<float>(value);
  const unsigned u = bits_of(x);
  p->bits = x != x ? 0x7fff : static_cast<unsigned short>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}
FUNCTION Real round_f64(Real x) { return x; }
FUNCTION Real round_f32(Real x) { return static_cast<Real>(static_cast<float>(x)); }
FUNCTION Real round_bf16(Real x) { bf16 y; store(&y, x); return load(y); }
FUNCTION Real round_f16(Real x) { f16 y; store(&y, x); return load(y); }
FUNCTION Real round_tf32(Real value) {
  const float x = static_cast<float>(value);
  const unsigned u = bits_of(x);
  return x != x ? value : static_cast<Real>(float_of((u + 0xfffu + ((u >> 13) & 1u)) & ~0x1fffu));
}
FUNCTION Real whole(Real x, Real low, Real high) {
  if (x != x) return Real(0);
  if (x < low) return low;
  if (x > high) return high;
  return static_cast<Real>(trunc(x));
}
FUNCTION Real round_i64(Real x) { return x != x ? Real(0) : static_cast<Real>(trunc(x)); }
FUNCTION Real round_i32(Real x) { return whole(x, Real(-2147483648.0), Real(2147483647.0)); }
FUNCTION Real round_i16(Real x) { return whole(x, -32768, 32767); }
FUNCTION Real round_u64(Real x) { return x > 0 ? static_cast<Real>(trunc(x)) : Real(0); }
FUNCTION Real round_u32(Real x) { return whole(x, 0, Real(4294967295.0)); }
FUNCTION Real round_u16(Real x) { return whole(x, 0, 65535); }
FUNCTION Real round_i8(Real x) { return whole(x, -128, 127); }
FUNCTION Real round_u8(Real x) { return whole(x, 0, 255); }
FUNCTION Real round_boolean(Real x) { return x != 0 ? Real(1) : Real(0); }
FUNCTION Real v_add(Real a, Real b) { return a + b; }
FUNCTION Real v_sub(Real a, Real b) { return a - b; }
FUNCTION Real v_mul(Real a, Real b) { return a * b; }
FUNCTION Real v_div(Real a, Real b) { return a / b; }
FUNCTION Real v_max(Real a, Real b) { return a > b || a != a ? a : b; }
FUNCTION Real v_min(Real a, Real b) { return a < b || a != a ? a : b; }
FUNCTION Real v_fma(Real a, Real b, Real c) { return a * b + c; }
FUNCTION Real v_where(Real a, Real b, Real c) { return a != 0 ? b : c; }
FUNCTION Real v_less(Real a, Real b) { return a < b ? Real(1) : Real(0); }
FUNCTION Real v_equal(Real a, Real b) { return a == b ? Real(1) : Real(0); }
FUNCTION Real v_neg(Real a) { return -a; }
FUNCTION Real v_abs(Real a) { return a < 0 ? -a : a; }
FUNCTION Real v_exp(Real a) { return exp(a); }
FUNCTION Real v_fast_exp(Real a) { return exp(a); }
FUNCTION Real v_exp2(Real a) { return exp2(a); }
FUNCTION Real v_log(Real a) { return log(a); }
FUNCTION Real v_sqrt(Real a) { return sqrt(a); }
FUNCTION Real v_rsqrt(Real a) { return Real(1) / sqrt(a); }
FUNCTION Real v_reciprocal(Real a) { return Real(1) / a; }
FUNCTION Real v_tanh(Real a) { return tanh(a); }
FUNCTION Real v_sin(Real a) { return sin(a); }
FUNCTION Real v_cos(Real a) { return cos(a); }
FUNCTION Real v_atan(Real a) { return atan(a); }
FUNCTION Real v_bit_and(Real a, Real b) {
  return static_cast<Real>(static_cast<long long>(a) & static_cast<long long>(b));
}
FUNCTION Real v_fmod(Real a, Real b) { return fmod(a, b); }
FUNCTION Real v_erf(Real a) { return erf(a); }
FUNCTION Real v_relu(Real a) { return a > 0 || a != a ? a : Real(0); }
FUNCTION Real v_sigmoid(Real a) { return Real(1) / (Real(1) + exp(-a)); }
FUNCTION Real v_floor(Real a) { return floor(a); }
FUNCTION Real v_round_tf32(Real a) { return round_tf32(a); }
FUNCTION Real v_binade(Real a) {
  const unsigned e = bits_of(static_cast<float>(a)) >> 23 & 255;
  const unsigned least = e < 1 ? 1 : e;
  const unsigned most = least > 253 ? 253 : least;
  return float_of(most << 23);
}
FUNCTION Real v_inverse_binade(Real a) { return Real(1) / v_binade(a); }
