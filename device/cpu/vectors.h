// Vectors of floats: the registers that emitted CPU kernels compute with.
//
// vf holds kLanes floats: 16 with AVX-512, 8 with AVX2, 4 otherwise, as with NEON; a kernel may ask
// for fewer by WL_VECTOR_BYTES. Every function is written on vectors that g++ and clang++ have for
// any processor; instructions of one stand beside, where they do better. Memory holds float, bf16,
// f16 or integers; load() and store() convert, floats rounding to nearest even. Nothing here needs
// an aligned address.
//
//   wl::store(y + i, wl::load(x + i) * 2.0f);               // kLanes elements
//   wl::store_first(y + i, wl::load_some(x + i, 0, n, 0), n); // the first n of them
#pragma once
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif
#include <utility>

#ifndef WL_VECTOR_BYTES
#if defined(__AVX512F__)
#define WL_VECTOR_BYTES 64
#elif defined(__AVX2__)
#define WL_VECTOR_BYTES 32
#else
#define WL_VECTOR_BYTES 16
#endif
#endif

#define WL_INLINE inline __attribute__((always_inline))
// Of a function whose loop fills the registers: inlined, it would share them with constants of the
// code around, which compilers rather keep there than its sums.
#define WL_CALLED __attribute__((noinline))
#if defined(__clang__)
#define WL_UNROLL _Pragma("clang loop unroll(full)")
#define WL_UNROLL_4 _Pragma("clang loop unroll_count(4)")
#else
#define WL_UNROLL _Pragma("GCC unroll 64")
#define WL_UNROLL_4 _Pragma("GCC unroll 4")
#endif

#define WL_PURE WL_INLINE
#include "convert.h"
#include "integers.h"

namespace wl {
inline constexpr long kLanes = WL_VECTOR_BYTES / 4;

typedef float vf __attribute__((vector_size(WL_VECTOR_BYTES)));
typedef int vi __attribute__((vector_size(WL_VECTOR_BYTES)));
typedef unsigned vu __attribute__((vector_size(WL_VECTOR_BYTES)));
typedef unsigned short vh __attribute__((vector_size(WL_VECTOR_BYTES / 2)));
typedef short vs __attribute__((vector_size(WL_VECTOR_BYTES / 2)));
typedef vf vf_anywhere __attribute__((aligned(4), may_alias));
typedef vh vh_anywhere __attribute__((aligned(2), may_alias));

// The processor's own vectors, where it has some of this width: WL_NATIVE(op) is its instruction on
// all floats of one.
#if WL_VECTOR_BYTES == 64 && defined(__AVX512F__)
typedef __m512 native;
#define WL_NATIVE(op) _mm512_##op##_ps
#elif WL_VECTOR_BYTES == 32 && defined(__AVX__)
typedef __m256 native;
#define WL_NATIVE(op) _mm256_##op##_ps
#elif WL_VECTOR_BYTES == 16 && defined(__x86_64__)
typedef __m128 native;
#define WL_NATIVE(op) _mm_##op##_ps
#endif

// NEON: its operations have names of several forms, and stand where they are used.
#if WL_VECTOR_BYTES == 16 && defined(__aarch64__)
#define WL_NEON 1
#endif

// Numbers of lanes as a pack, for shuffles.
template <long... I> using long_list = std::integer_sequence<long, I...>;
using lane_numbers = std::make_integer_sequence<long, kLanes>;

WL_INLINE vf splat(float x) {
  return x - vf{};
}

WL_INLINE vf counted(long first) {  // first, first + 1, …
  vf x;
  for (long i = 0; i < kLanes; ++i)
    x[i] = static_cast<float>(first + i);
  return x;
}

WL_INLINE vf select(vi condition, vf yes, vf no) {
  return (vf)((condition & (vi)yes) | (~condition & (vi)no));
}

// kLanes elements from and to memory
WL_INLINE vf load(const float* p) {
  return *reinterpret_cast<const vf_anywhere*>(p);
}

WL_INLINE vf load(const bf16* p) {
  return (vf)(__builtin_convertvector(*reinterpret_cast<const vh_anywhere*>(p), vu) << 16);
}

WL_INLINE vf load(const f16* p) {
#if WL_VECTOR_BYTES == 64 && defined(__AVX512F__)
  return (vf)_mm512_cvtph_ps((__m256i) * reinterpret_cast<const vh_anywhere*>(p));
#elif WL_VECTOR_BYTES == 32 && defined(__F16C__)
  return (vf)_mm256_cvtph_ps((__m128i) * reinterpret_cast<const vh_anywhere*>(p));
#elif defined(WL_NEON)
  return (vf)vcvt_f32_f16((float16x4_t) * reinterpret_cast<const vh_anywhere*>(p));
#else
  vf out;
  for (long i = 0; i < kLanes; ++i)
    out[i] = to_float(p[i]);
  return out;
#endif
}

WL_INLINE void store(float* p, vf x) {
  *reinterpret_cast<vf_anywhere*>(p) = x;
}

WL_INLINE void store(bf16* p, vf x) {
  const vu u = (vu)x;
  const vu rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  const vu quiet = (u >> 16) | 0x40u;
  const vu is_nan = (vu)(x != x);
  const vu bits = (is_nan & quiet) | (~is_nan & rounded);
  *reinterpret_cast<vh_anywhere*>(p) = __builtin_convertvector(bits, vh);
}

WL_INLINE void store(f16* p, vf x) {
#if WL_VECTOR_BYTES == 64 && defined(__AVX512F__)
  *reinterpret_cast<vh_anywhere*>(p) = (vh)_mm512_cvtps_ph((__m512)x, 0);
#elif WL_VECTOR_BYTES == 32 && defined(__F16C__)
  *reinterpret_cast<vh_anywhere*>(p) = (vh)_mm256_cvtps_ph((__m256)x, 0);
#elif defined(WL_NEON)
  *reinterpret_cast<vh_anywhere*>(p) = (vh)vcvt_f16_f32((float32x4_t)x);
#else
  for (long i = 0; i < kLanes; ++i)
    p[i] = cast<f16>(x[i]);
#endif
}

// Floats of 8 bits, one after another: beyond the largest they saturate.
WL_INLINE vf load(const e4m3* p) {
  vf out;
  for (long i = 0; i < kLanes; ++i)
    out[i] = to_float(p[i]);
  return out;
}

WL_INLINE vf load(const e5m2* p) {
  vf out;
  for (long i = 0; i < kLanes; ++i)
    out[i] = to_float(p[i]);
  return out;
}

WL_INLINE void store(e4m3* p, vf x) {
  for (long i = 0; i < kLanes; ++i)
    p[i] = cast<e4m3>(x[i]);
}

WL_INLINE void store(e5m2* p, vf x) {
  for (long i = 0; i < kLanes; ++i)
    p[i] = cast<e5m2>(x[i]);
}

// Integers, which are exact in a float below 2^24, stored towards zero and saturating; truth values
// are 0 and 1.
#define WL_INTEGERS(T, vector, short_of, long_of, low, high)                                  \
  typedef T vector                                                                            \
      __attribute__((vector_size(kLanes * sizeof(T)), aligned(sizeof(T)), may_alias));        \
  WL_INLINE vf load(const T* p) {                                                             \
    const auto wide = __builtin_convertvector(*reinterpret_cast<const vector*>(p), short_of); \
    return __builtin_convertvector(__builtin_convertvector(wide, long_of), vf);               \
  }                                                                                           \
  WL_INLINE void store(T* p, vf x) {                                                          \
    const vf least = select(x > splat(low), x, splat(low)),                                   \
             held = select(least < splat(high), least, splat(high));                          \
    *reinterpret_cast<vector*>(p) =                                                           \
        __builtin_convertvector(__builtin_convertvector(held, long_of), vector);              \
  }
WL_INTEGERS(signed char, v8, vs, vi, -128, 127)
WL_INTEGERS(unsigned char, vu8, vs, vi, 0, 255)
WL_INTEGERS(short, v16, vi, vi, -32768, 32767)
WL_INTEGERS(unsigned short, vu16, vi, vi, 0, 65535)
WL_INTEGERS(unsigned, vu32, vu32, vu32, 0, 0x1.fffffep31f)
WL_INTEGERS(unsigned long long, vu64, vu64, vu64, 0, 0x1.fffffep63f)
WL_INTEGERS(int, v32, vi, vi, -0x1p31f, 0x1.fffffep30f)
WL_INTEGERS(long long, v64, v64, v64, -0x1p63f, 0x1.fffffep62f)
#undef WL_INTEGERS

// The first n lanes, the others `fill`.
WL_INLINE vf first(vf x, long n, float fill) {
  return select(counted(0) < static_cast<float>(n), x, splat(fill));
}

// To the first n elements, 0 <= n <= kLanes; the others keep their value.
template <class T> WL_INLINE void store_first(T* p, vf x, long n) {
  if (n == kLanes) return store(p, x);
  T part[kLanes];
  store(part, x);
  for (long i = 0; i < n; ++i)
    p[i] = part[i];
}
#if WL_VECTOR_BYTES == 64 && defined(__AVX512F__)
WL_INLINE __mmask16 lanes_between(long begin, long end) {
  auto mask = static_cast<__mmask16>(((1u << end) - 1u) & ~((1u << begin) - 1u));
  asm(""
      : "+k"(mask));  // GCC takes a masked load by a known mask for a whole one where the other
                      // lanes are not used
  return mask;
}

WL_INLINE void store_first(float* p, vf x, long n) {
  _mm512_mask_storeu_ps(p, lanes_between(0, n), (__m512)x);
}
#endif
// Elements begin to end, 0 <= begin <= end <= kLanes, of those at p; the other lanes get `fill`.
template <class T> WL_INLINE vf load_some(const T* p, long begin, long end, float fill) {
#if WL_VECTOR_BYTES == 64 && defined(__AVX512F__)
  if constexpr (__is_same(T, float))
    return (vf)_mm512_mask_loadu_ps(_mm512_set1_ps(fill), lanes_between(begin, end), p);
#endif
#if WL_VECTOR_BYTES == 32 && defined(__AVX__)
  if constexpr (__is_same(T, float)) {
    const vf lane = counted(0);
    const vi wanted = (lane >= static_cast<float>(begin)) & (lane < static_cast<float>(end));
    const vf read = (vf)_mm256_maskload_ps(p, (__m256i)wanted);
    return select(wanted, read, splat(fill));
  }
#endif
  T part[kLanes] = {};
  for (long i = begin; i < end; ++i)
    part[i] = p[i];
  vf out = load(part);
  for (long i = 0; i < kLanes; ++i)
    if (i < begin || i >= end) out[i] = fill;
  return out;
}

// A store past the caches where the address allows it; a task that streams ends with stream_end().
template <class T> WL_INLINE void stream(T* p, vf x) {
  store(p, x);
}
#if defined(WL_NATIVE)
WL_INLINE void stream(float* p, vf x) {
  if ((reinterpret_cast<unsigned long>(p) & (WL_VECTOR_BYTES - 1)) != 0) return store(p, x);
  WL_NATIVE(stream)(p, (native)x);
}
#endif
WL_INLINE void stream_end() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

// A value as it would be after it was stored in T and loaded again.
template <class T> WL_INLINE vf rounded(vf x) {
  T part[kLanes];
  store(part, x);
  return load(part);
}
}  // namespace wl
