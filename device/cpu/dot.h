// Products of matrices by dot products of neighbours along k, and the packing that they want.
//
//   acc[i][j] += Σ_p a[i·AM + p] · b[j][p]      i < M, j < N, p < k; k even
//
// of bf16, summed in fp32, or of whole numbers of 16 bits, summed in 32 bits that wrap: two terms
// at once, 32 bits of each operand for each of the processor's sums (AVX-512 BF16: vdpbf16ps,
// AVX-512 VNNI: vpdpwssd). The rows of b come in pairs, whose elements are neighbours:
//
//   term p of column j lies at  b[p / 2 · BK + 2 · j + p % 2]
//
// Worked example: k = 4, two columns with terms 1 2 3 4 and 5 6 7 8, BK = 4:  1 2 5 6 | 3 4 7 8
//
// Each product is exact, and each sum of floats rounds once a term, as fused multiply-adds do.
// Numbers below 2^-126 count as 0, among operands and sums: the instruction says so. Where a
// processor lacks it, two fused multiply-adds stand in, which keep them; and for whole numbers what
// processors have had for longer.
//
// Sums of whole numbers lie in memory as `long long`, as emitted kernels hold all i32.
//
// Source: Intel 64 and IA-32 Architectures Software Developer's Manual, VDPBF16PS, VPDPWSSD,
// PMADDWD.
#pragma once
#include "multiply.h"

namespace wl {
typedef vu vu_anywhere __attribute__((aligned(2), may_alias));
typedef unsigned pair_anywhere __attribute__((aligned(2), may_alias));
typedef long long v64_of_lanes __attribute__((vector_size(kLanes * 8), aligned(8), may_alias));

// What products of pairs of T are summed in, in registers and in memory.
template <class T> struct SumsOf;

template <> struct SumsOf<bf16> {
  typedef vf vector;
  typedef float element;
};

template <> struct SumsOf<short> {
  typedef vi vector;
  typedef long long element;
};

// sum + a[0] · b[0] + a[1] · b[1], in each lane: the halves of its 32 bits, the lower one first in
// memory.
WL_INLINE vf add_products_of_pairs(vf sum, vu a, vu b) {
#if WL_VECTOR_BYTES == 64 && defined(__AVX512BF16__)
  return (vf)_mm512_dpbf16_ps((__m512)sum, (__m512bh)a, (__m512bh)b);
#else
  const vf first = fma((vf)(a << 16), (vf)(b << 16), sum);
  return fma((vf)(a & 0xffff0000u), (vf)(b & 0xffff0000u), first);
#endif
}

WL_INLINE vi add_products_of_pairs(vi sum, vu a, vu b) {
#if WL_VECTOR_BYTES == 64 && defined(__AVX512VNNI__)
  return (vi)_mm512_dpwssd_epi32((__m512i)sum, (__m512i)a, (__m512i)b);
#elif WL_VECTOR_BYTES == 64 && defined(__AVX512BW__)
  return (vi)((vu)sum + (vu)_mm512_madd_epi16((__m512i)a, (__m512i)b));
#elif WL_VECTOR_BYTES == 32 && defined(__AVX2__)
  return (vi)((vu)sum + (vu)_mm256_madd_epi16((__m256i)a, (__m256i)b));
#elif WL_VECTOR_BYTES == 16 && defined(__SSE2__)
  return (vi)((vu)sum + (vu)_mm_madd_epi16((__m128i)a, (__m128i)b));
#else
  const vi first = ((vi)(a << 16) >> 16) * ((vi)(b << 16) >> 16);
  return (vi)((vu)sum + (vu)first + (vu)(((vi)a >> 16) * ((vi)b >> 16)));
#endif
}

// Sums in memory with these added, or as they are.
template <bool Fresh> WL_INLINE void keep_sums(float* to, vf own) {
  store(to, Fresh ? own : load(to) + own);
}

template <bool Fresh> WL_INLINE void keep_sums(long long* to, vi own) {
  v64_of_lanes* const all = reinterpret_cast<v64_of_lanes*>(to);
  const vu before = Fresh ? vu{} : __builtin_convertvector(*all, vu);
  *all = __builtin_convertvector((vi)(before + (vu)own), v64_of_lanes);
}

WL_INLINE vu splat_pair(const void* p) {
  return *reinterpret_cast<const pair_anywhere*>(p) - vu{};
}

// The first n pairs at p, 0 < n <= kLanes; the other lanes are 0.
WL_INLINE vu load_pairs(const void* p, long n) {
  if (n == kLanes) return *reinterpret_cast<const vu_anywhere*>(p);
#if WL_VECTOR_BYTES == 64 && defined(__AVX512F__)
  return (vu)_mm512_maskz_loadu_epi32(lanes_between(0, n), p);
#else
  vu out = {};
  __builtin_memcpy(&out, p, static_cast<unsigned long>(n) * 4);
  return out;
#endif
}

WL_INLINE void store_pairs(void* p, vu pairs, long n) {
  if (n == kLanes) {
    *reinterpret_cast<vu_anywhere*>(p) = pairs;
    return;
  }
#if WL_VECTOR_BYTES == 64 && defined(__AVX512F__)
  _mm512_mask_storeu_epi32(p, lanes_between(0, n), (__m512i)pairs);
#else
  __builtin_memcpy(p, &pairs, static_cast<unsigned long>(n) * 4);
#endif
}

// A register tile, for all of k: see multiply_tile().
template <bool Fresh, int M, long N, long AM, long BK, long P, class T>
WL_CALLED void multiply_pairs(typename SumsOf<T>::element* acc, const T* a, const T* b, long k) {
  constexpr int kVectors = kVectorsOf<N>;
  constexpr long kLast = N - (kVectors - 1) * kLanes;
  typename SumsOf<T>::vector sum[M][kVectors] = {};
  WL_UNROLL_4
  for (long p = 0; p < k / 2; ++p) {
    vu row[kVectors];
    WL_UNROLL
    for (int v = 0; v < kVectors; ++v)
      row[v] = load_pairs(b + p * BK + v * 2 * kLanes, v + 1 == kVectors ? kLast : kLanes);
    WL_UNROLL
    for (int i = 0; i < M; ++i) {
      const vu x = splat_pair(a + i * AM + p * 2);
      WL_UNROLL
      for (int v = 0; v < kVectors; ++v)
        sum[i][v] = add_products_of_pairs(sum[i][v], x, row[v]);
    }
  }
  WL_UNROLL
  for (int i = 0; i < M * kVectors; ++i)
    keep_sums<Fresh>(acc + i / kVectors * P + i % kVectors * kLanes,
                     sum[i / kVectors][i % kVectors]);
}

// Elements rounded to T, of 16 bits, in the lower halves of lanes.
template <class T> WL_INLINE vu bits_as(vf x) {
  T part[kLanes];
  store(part, x);
  return __builtin_convertvector(*reinterpret_cast<const vh_anywhere*>(part), vu);
}

// dst[r / 2 · dst_stride + 2 · c + r % 2] = src[r · src_stride + c], Rows of them, an even number.
// Rows of src may be read up to a multiple of kLanes elements.
template <long Rows, long Cols, class T>
inline void store_in_pairs(T* dst, long dst_stride, const float* src, long src_stride) {
  for (long r = 0; r < Rows; r += 2)
    for (long c = 0; c < Cols; c += kLanes) {
      const vu even = bits_as<T>(load(src + r * src_stride + c));
      const vu odd = bits_as<T>(load(src + (r + 1) * src_stride + c));
      store_pairs(dst + r / 2 * dst_stride + 2 * c, even | odd << 16, min(Cols - c, kLanes));
    }
}

// The same of a source with rows and columns exchanged: src[c · src_stride + r], turned in
// registers by pairs.
template <long Rows, long Cols, class T>
inline void store_in_pairs_transposed(T* dst, long dst_stride, const float* src, long src_stride) {
  for (long c = 0; c < Cols; c += kLanes)
    for (long r = 0; r < Rows; r += 2 * kLanes) {
      vf block[kLanes];
      for (long i = 0; i < kLanes; ++i) {
        const float* const from = src + min(c + i, Cols - 1) * src_stride + r;
        T part[2 * kLanes] = {};
        store(part, load(from));
        if (r + kLanes < Rows) store(part + kLanes, load(from + kLanes));
        block[i] = (vf)load_pairs(part, kLanes);
      }
      transpose(block);
      const long pairs = min((Rows - r) / 2, kLanes);
      for (long i = 0; i < pairs; ++i)
        store_pairs(dst + (r / 2 + i) * dst_stride + 2 * c, (vu)block[i], min(Cols - c, kLanes));
    }
}
}  // namespace wl
