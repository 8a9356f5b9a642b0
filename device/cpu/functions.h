// Elementwise functions on vectors, by the names of the value operations. Arithmetic is fp32; exp,
// log, tanh and erf are polynomials after range reduction, within 2 units in the last place over
// the whole range (tests hold them to 3), with NaN, infinities and subnormals as in the C library.
#pragma once
#include "vectors.h"

namespace wl {
WL_INLINE vf add(vf a, vf b) {
  return a + b;
}

WL_INLINE vf sub(vf a, vf b) {
  return a - b;
}

WL_INLINE vf mul(vf a, vf b) {
  return a * b;
}

WL_INLINE vf div(vf a, vf b) {
  return a / b;
}

WL_INLINE vf neg(vf a) {
  return -a;
}

WL_INLINE vf fma(vf a, vf b, vf c) {
#if defined(WL_NATIVE) && (WL_VECTOR_BYTES == 64 || defined(__FMA__))
  return (vf)WL_NATIVE(fmadd)((native)a, (native)b, (native)c);
#elif defined(WL_NEON)
  return (vf)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
  return a * b + c;
#endif
}

WL_INLINE vf fma(vf a, vf b, float c) {
  return fma(a, b, splat(c));
}

// The first coefficient is that of x's highest power.
template <class... Lower> WL_INLINE vf polynomial(vf x, float highest, Lower... lower) {
  vf q = splat(highest);
  ((q = fma(q, x, lower)), ...);
  return q;
}

// NaN in either operand comes through.
WL_INLINE vf max(vf a, vf b) {
#if WL_VECTOR_BYTES == 64 && defined(__AVX512F__)
  const __m512 m = _mm512_max_ps((__m512)a, (__m512)b);
  return (vf)_mm512_mask_mov_ps(m, _mm512_cmp_ps_mask((__m512)a, (__m512)a, _CMP_UNORD_Q),
                                (__m512)a);
#elif defined(WL_NEON)
  return (vf)vmaxq_f32((float32x4_t)a, (float32x4_t)b);
#else
  return select((a > b) | (a != a), a, b);
#endif
}

WL_INLINE vf min(vf a, vf b) {
#if defined(WL_NEON)
  return (vf)vminq_f32((float32x4_t)a, (float32x4_t)b);
#else
  return select((a < b) | (a != a), a, b);
#endif
}

WL_INLINE vf relu(vf a) {
  return max(a, vf{});
}

WL_INLINE vf abs(vf a) {
  return (vf)((vi)a & 0x7fffffff);
}

WL_INLINE vf less(vf a, vf b) {
  return select(a < b, splat(1), vf{});
}

WL_INLINE vf equal(vf a, vf b) {
  return select(a == b, splat(1), vf{});
}

WL_INLINE vf where(vf condition, vf yes, vf no) {
  return select(condition != vf{}, yes, no);
}

WL_INLINE vf reciprocal(vf a) {
  return 1.0f / a;
}

WL_INLINE vf sqrt(vf a) {
#if defined(WL_NATIVE)
  return (vf)WL_NATIVE(sqrt)((native)a);
#elif defined(WL_NEON)
  return (vf)vsqrtq_f32((float32x4_t)a);
#else
  for (long i = 0; i < kLanes; ++i)
    a[i] = __builtin_sqrtf(a[i]);
  return a;
#endif
}

WL_INLINE vf rsqrt(vf a) {
  return 1.0f / sqrt(a);
}

WL_INLINE vf copy_sign(vf magnitude, vf sign) {
  return (vf)(((vi)magnitude & 0x7fffffff) | ((vi)sign & static_cast<int>(0x80000000u)));
}

// Adding and taking away 1.5·2^23 leaves the nearest integer; its bits are that integer on top of a
// constant.
inline constexpr float kToInteger = 12582912.0f;

WL_INLINE vf floor(vf a) {
  const vf near = (abs(a) + 0x1p23f) - 0x1p23f;
  const vf signed_near = copy_sign(near, a);
  const vf down = signed_near - select(signed_near > a, splat(1), vf{});
  const vf sign = select(a == vf{}, a, down);
  return select((abs(a) < 0x1p23f), copy_sign(down, sign), a);
}

WL_INLINE vf round_tf32(vf a) {
  const vu u = (vu)a;
  const vu near = (u + 0xfffu + ((u >> 13) & 1u)) & 0xffffe000u;
  return select(abs(a) < __builtin_inff(), (vf)near, a);
}

WL_INLINE vf binade(vf a) {
  const vi exponent = (vi)a & 0x7f800000;
  const vi held = exponent > 0x7e800000 ? vi{} + 0x7e800000 : exponent;
  return (vf)(exponent < 0x00800000 ? vi{} + 0x00800000 : held);
}

WL_INLINE vf inverse_binade(vf a) {
  return (vf)(0x7f000000 - (vi)binade(a));
}

template <> WL_INLINE vf rounded<tf32>(vf a) {
  return round_tf32(a);
}

// x · 2^n for integral n, |n| < 300, also where 2^n or the result is no normal number
WL_INLINE vf scale_by_power(vf x, vf n_plus_magic) {
#if WL_VECTOR_BYTES == 64 && defined(__AVX512F__)
  return (vf)_mm512_scalef_ps((__m512)x, (__m512)(n_plus_magic - kToInteger));
#else
  const vi n = (vi)n_plus_magic - __builtin_bit_cast(int, kToInteger);
  const vi half = n >> 1;
  const vf a = (vf)((half + 127) << 23);
  const vf b = (vf)((n - half + 127) << 23);
  return x * a * b;
#endif
}

// e^r for |r| <= ln 2 / 2
WL_INLINE vf exp_reduced(vf r) {
  const vf rr = r * r;
  const vf low = fma(splat(0.0416661876f), r, 0.16666513f);
  vf q = fma(splat(0.00139517041f), r, 0.00836959142f);
  q = fma(q, rr, low);
  q = fma(q, r, 0.5f);
  return fma(q, rr, r) + 1.0f;
}

// Keeps NaN: an x86's min and max answer their second operand then, NEON's NaN.
WL_INLINE vf clamp(vf x, float low, float high) {
#if defined(WL_NATIVE)
  return (vf)WL_NATIVE(min)((native)splat(high), WL_NATIVE(max)((native)splat(low), (native)x));
#elif defined(WL_NEON)
  return min(splat(high), max(splat(low), x));
#else
  x = select(x < low, splat(low), x);
  return select(x > high, splat(high), x);
#endif
}

WL_INLINE vf exp(vf x) {
#if WL_VECTOR_BYTES == 64 && defined(__AVX512DQ__)
  // Beyond the range the remainder is clipped to 1, be it NaN; scaling by 2^n still gives 0,
  // infinity or NaN.
  const __m512 n = _mm512_roundscale_ps((__m512)(x * 1.44269504f), 8);
  const vf r = fma((vf)n, splat(2.12194440e-4f), fma((vf)n, splat(-0.693359375f), x));
  return (vf)_mm512_scalef_ps(
      (__m512)exp_reduced((vf)_mm512_range_ps((__m512)r, _mm512_set1_ps(1), 2)), n);
#else
  x = clamp(x, -110.0f, 100.0f);
  const vf shifted = fma(x, splat(1.44269504f), kToInteger);
  const vf n = shifted - kToInteger;
  const vf r = fma(n, splat(2.12194440e-4f), fma(n, splat(-0.693359375f), x));
  return scale_by_power(exp_reduced(r), shifted);
#endif
}

WL_INLINE vf fast_exp(vf x) {
  return exp(x);
}

WL_INLINE vf exp2(vf x) {
  x = clamp(x, -160.0f, 140.0f);
  const vf shifted = x + kToInteger;
  const vf n = shifted - kToInteger;
  return scale_by_power(exp_reduced((x - n) * 0.693147181f), shifted);
}

WL_INLINE vf log(vf x) {
  const vi tiny = x < 0x1p-126f;
  const vf y = select(tiny, x * 0x1p32f, x);
  // y = 2^e · (1 + f) with 1 + f in [√½, √2)
  const vi bits = (vi)y - 0x3f3504f3;
  const vf e = __builtin_convertvector(bits >> 23, vf) - select(tiny, splat(32), vf{});
  const vf f = (vf)((bits & 0x7fffff) + 0x3f3504f3) - 1.0f;
  const vf q = polynomial(f, 0.0674664021f, -0.116756406f, 0.118881558f, -0.124055904f,
                          0.142195535f, -0.166679958f, 0.200021186f, -0.250000096f, 0.333333126f);
  const vf ff = f * f;
  vf tail = fma(q, ff * f, e * -2.12194440e-4f);
  tail = fma(ff, splat(-0.5f), tail);
  vf out = fma(e, splat(0.693359375f), f + tail);
  out = select(x < vf{}, splat(__builtin_nanf("")), out);
  out = select(x == vf{}, splat(-__builtin_inff()), out);
  return select((x == __builtin_inff()) | (x != x), x, out);
}

WL_INLINE vf tanh(vf x) {
  const vf a = abs(x);
  const vf u = x * x;
  const vf q =
      polynomial(u, -0.00591062575f, 0.0208098137f, -0.053788135f, 0.133319777f, -0.333333001f);
  const vf small = fma(q * u, x, x);
  const vf large = copy_sign(1.0f - 2.0f / (exp(a + a) + 1.0f), x);
  return select(a < 0.6f, small, select(x != x, x, large));
}

#if WL_VECTOR_BYTES == 64 && defined(__AVX512DQ__)
// erf(t) / t on the quarters [0, 1/4), [1/4, 1/2) … of [0, 4): polynomials of what t is beyond the
// quarter's begin, by interpolation at Chebyshev's points. A row holds one coefficient of all
// quarters, the highest power's first, so that an instruction looks it up for a whole vector.
constexpr int kErfTerms = 6;
alignas(64) constexpr float kErf[kErfTerms][kLanes] = {
    {-0.0194673929f, -0.0462688766f, -0.0465112254f, -0.0255787428f, -0.000676680706f,
     0.0144002596f, 0.0169277489f, 0.0120633049f, 0.00591950398f, 0.00167752628f, -0.000307631883f,
     -0.000865142152f, -0.000815426291f, -0.000613132957f, -0.000427459017f, -0.000293190329f},
    {0.118221655f, 0.09161634f, 0.0310501456f, -0.0284132641f, -0.0599144809f, -0.0594391078f,
     -0.0403667241f, -0.0188110396f, -0.00382708292f, 0.0033275641f, 0.00523357932f, 0.00475364225f,
     0.00364106614f, 0.00261870958f, 0.00185703591f, 0.00132775493f},
    {-0.000691356021f, 0.104407549f, 0.167088106f, 0.169805601f, 0.126293376f, 0.0665025935f,
     0.016164083f, -0.0137911718f, -0.0252823588f, -0.0255642105f, -0.0212618876f, -0.016242072f,
     -0.0120279342f, -0.00888934173f, -0.00664710579f, -0.00505232159f},
    {-0.376086086f, -0.335333437f, -0.229925439f, -0.100244723f, 0.012461991f, 0.0846200958f,
     0.114466965f, 0.114101008f, 0.0985875502f, 0.0791133717f, 0.0614484623f, 0.0474157184f,
     0.0368813202f, 0.0290983319f, 0.023317581f, 0.0189618953f},
    {-8.61062745e-07f, -0.181166098f, -0.324434102f, -0.407034665f, -0.427592784f, -0.401438981f,
     -0.350093246f, -0.292021513f, -0.238497198f, -0.194067642f, -0.159063607f, -0.132004917f,
     -0.111062236f, -0.0946651623f, -0.0816310495f, -0.071110867f},
    {1.12837923f, 1.10530555f, 1.04099977f, 0.948207498f, 0.842700779f, 0.738320112f, 0.644070089f,
     0.563812375f, 0.497661144f, 0.44379434f, 0.399837226f, 0.363599777f, 0.333325982f,
     0.307690978f, 0.28571406f, 0.266666651f},
};

WL_INLINE vf erf(vf x) {
  // The processor's min answers its second operand where that is NaN, which so comes through.
  const __m512 t = _mm512_min_ps(_mm512_set1_ps(0x1.fffffep1f), (__m512)abs(x));
  // Neighbours of 2^21 are a quarter apart: rounded down, the sum's last bits number the quarter.
  const __m512i quarter = (__m512i)_mm512_add_round_ps(t, _mm512_set1_ps(0x1p21f),
                                                       _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
  const vf beyond = (vf)_mm512_reduce_ps(t, 0x21);
  vf q = (vf)_mm512_permutexvar_ps(quarter, _mm512_load_ps(kErf[0]));
  WL_UNROLL
  for (int i = 1; i < kErfTerms; ++i)
    q = fma(q, beyond, (vf)_mm512_permutexvar_ps(quarter, _mm512_load_ps(kErf[i])));
  const __m512 up_to_one = _mm512_min_ps(_mm512_set1_ps(1), (__m512)(q * (vf)t));
  return copy_sign((vf)up_to_one, x);
}
#else
WL_INLINE vf erf(vf x) {
  const vf t = abs(x);
  const vf u = x * x;
  // erf(x) = x + x·p(x²) below 0.95
  const vf p = polynomial(u, 8.18509388e-5f, -0.000809770358f, 0.00519695211f, -0.0268577051f,
                          0.11283664f, -0.376126316f, 0.128379166f);
  const vf small = fma(p, x, x);
  const vf s = select(t > 4.0f, splat(4.0f), t);
  // 1 - erf(t) = e^-q(t) above
  const vf q = polynomial(s, -0.000191503927f, 0.00299953867f, -0.0220519895f, 0.103566876f,
                          0.637600057f, 1.12742608f, 0.000256448237f);
  const vf shifted = fma(q, splat(-1.44269504f), kToInteger);
  const vf n = shifted - kToInteger;
  const vf r = fma(n, splat(-0.693147181f), -q);
  const vf large = copy_sign(1.0f - scale_by_power(exp_reduced(r), shifted), x);
  return select(t < 0.95f, small, select(x != x, x, large));
}
#endif

WL_INLINE vf sigmoid(vf x) {
  const vf e = exp(-abs(x));
  return select(x < vf{}, e, splat(1)) / (1.0f + e);
}

// Of t up to tan(π/8) by a polynomial; of others by atan(t) = π/4 + atan((t - 1) / (t + 1)) and,
// from tan(3π/8) on, π/2 - atan(1 / t).
WL_INLINE vf atan(vf x) {
  const vf t = abs(x);
  const vi large = t > 2.41421356f;
  const vi middle = t > 0.414213562f;
  const vf top = select(large, splat(-1), select(middle, t - 1.0f, t));
  const vf bottom = select(large, t, select(middle, t + 1.0f, splat(1)));
  const vf r = top / bottom;
  const vf u = r * r;
  const vf q =
      polynomial(u, -0.060834505f, 0.105960003f, -0.142438486f, 0.199984894f, -0.333333155f);
  const vf middle_start = select(middle, splat(0.785398163f), vf{});
  const vf start = select(large, splat(1.57079633f), middle_start);
  const vf middle_lost = select(middle, splat(-2.18556941e-8f), vf{});
  const vf lost = select(large, splat(-4.37113883e-8f), middle_lost);
  const vf small = fma(q * u, r, r);
  return select(x != x, x, copy_sign(start + (small + lost), x));
}

WL_INLINE vf bit_and(vf a, vf b) {
  const vi shared = __builtin_convertvector(a, vi) & __builtin_convertvector(b, vi);
  return __builtin_convertvector(shared, vf);
}

WL_INLINE vf fmod(vf a, vf b) {
  vf out;
  for (long i = 0; i < kLanes; ++i)
    out[i] = __builtin_fmodf(a[i], b[i]);
  return out;
}

// The lane that `moved` takes for one; from kLanes on they are the fill's.
template <bool Reverse, long By> constexpr long moved_from(long lane) {
  if (Reverse) return lane + By;
  return lane < By ? kLanes + lane : lane - By;
}

// Of each lane what is so many before it, or in reverse behind it; beyond the vector lies the fill.
template <bool Reverse, long By, long... I> WL_INLINE vf moved(vf x, vf fill, long_list<I...>) {
  return __builtin_shufflevector(x, fill, moved_from<Reverse, By>(I)...);
}

// One number of a whole vector, by halves: across<add>(x).
template <vf (*Combine)(vf, vf), long By = kLanes / 2> WL_INLINE float across(vf x) {
  x = Combine(x, moved<true, By>(x, x, lane_numbers{}));
  if constexpr (By > 1)
    return across<Combine, By / 2>(x);
  else
    return x[0];
}

// What each lane makes together with those before it, or in reverse behind it; and the lane that
// has made all together, in every lane.
template <vf (*Combine)(vf, vf), bool Reverse, long By = 1>
WL_INLINE vf prefixes(vf x, vf identity) {
  x = Combine(moved<Reverse, By>(x, identity, lane_numbers{}), x);
  if constexpr (2 * By < kLanes) x = prefixes<Combine, Reverse, 2 * By>(x, identity);
  return x;
}

template <bool Reverse, long... I> WL_INLINE vf last(vf x, long_list<I...>) {
  return __builtin_shufflevector(x, x, (Reverse ? 0 * I : kLanes - 1)...);
}

// Of several vectors, pairwise.
template <vf (*Combine)(vf, vf), int N> WL_INLINE float across(vf (&x)[N]) {
  WL_UNROLL
  for (int step = 1; step < N; step *= 2) {
    WL_UNROLL
    for (int i = 0; i + step < N; i += 2 * step)
      x[i] = Combine(x[i], x[i + step]);
  }
  return across<Combine>(x[0]);
}

// sin(x + turns · π/2). What is left of x beside n · π/2 is exact to the last bits: π/2 comes in
// parts whose n-folds are exact.
WL_INLINE vf turned_sine(vf x, int turns) {
  typedef double vd __attribute__((vector_size(2 * WL_VECTOR_BYTES)));
  if (!(across<max>(abs(x)) < 0x1p20f)) {
    vf out;
    for (long i = 0; i < kLanes; ++i)
      out[i] = turns ? __builtin_cosf(x[i]) : __builtin_sinf(x[i]);
    return out;
  }
  const vd wide = __builtin_convertvector(x, vd);
  const vd n = (wide * 0.63661977236758138 + 0x1.8p52) - 0x1.8p52;
  const vf r = __builtin_convertvector(
      wide - n * 0x1.921fb544p0 - n * 0x1.0b4611a6p-34 - n * 0x1.3198a2e037073p-69, vf);
  const vf u = r * r;
  const vi quadrant = __builtin_convertvector(n, vi) + turns;
  const vf sine =
      fma(polynomial(u, 2.75573192e-6f, -1.98412698e-4f, 8.33333333e-3f, -0.166666667f) * u, r, r);
  const vf cosine =
      fma(polynomial(u, -2.75573192e-7f, 2.48015873e-5f, -1.38888889e-3f, 0.0416666667f, -0.5f), u,
          splat(1));
  const vf out = select((quadrant & 1) != 0, cosine, sine);
  return select((quadrant & 2) != 0, -out, out);
}

WL_INLINE vf sin(vf x) {
  return turned_sine(x, 0);
}

WL_INLINE vf cos(vf x) {
  return turned_sine(x, 1);
}
}  // namespace wl
