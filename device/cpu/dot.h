// Products of matrices by dot products of neighbours along k, and the packing that they want.
//
//   acc[i][j] += Σ_p a[i·AM + p] · b[j][p]      i < M, j < N, p < k; k even
//
// of 16-bit floats (bf16), two terms at once: what the processor takes 32 bits of from each operand
// for each of its sums (AVX-512 BF16: vdpbf16ps). The rows of b come in pairs, whose elements are
// neighbours:
//
//   term p of column j lies at  b[p / 2 · BK + 2 · j + p % 2]
//
// Worked example: k = 4, two columns with terms 1 2 3 4 and 5 6 7 8, BK = 4:  1 2 5 6 | 3 4 7 8
//
// Each product is exact, and each sum rounds once a term, as fused multiply-adds do. Numbers too
// small for bf16's exponents (below 2^-126) count as 0, among operands and sums: the instruction
// says so. Where a processor lacks it, two fused multiply-adds stand in.
//
// Source: Intel 64 and IA-32 Architectures Software Developer's Manual, VDPBF16PS.
#pragma once
#include "multiply.h"

namespace wl {
typedef vu vu_anywhere __attribute__((aligned(2), may_alias));
typedef unsigned pair_anywhere __attribute__((aligned(2), may_alias));

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

WL_INLINE vu splat_pair(const bf16* p) {
  return *reinterpret_cast<const pair_anywhere*>(p) - vu{};
}

// The first n pairs at p, 0 < n <= kLanes; the other lanes are 0.
WL_INLINE vu load_pairs(const bf16* p, long n) {
  if (n == kLanes) return *reinterpret_cast<const vu_anywhere*>(p);
#if WL_VECTOR_BYTES == 64 && defined(__AVX512F__)
  return (vu)_mm512_maskz_loadu_epi32(lanes_between(0, n), p);
#else
  vu out = {};
  __builtin_memcpy(&out, p, static_cast<unsigned long>(n) * 4);
  return out;
#endif
}

WL_INLINE void store_pairs(bf16* p, vu pairs, long n) {
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
template <bool Fresh, int M, long N, long AM, long BK, long P>
WL_CALLED void multiply_pairs(float* acc, const bf16* a, const bf16* b, long k) {
  constexpr int kVectors = kVectorsOf<N>;
  constexpr long kLast = N - (kVectors - 1) * kLanes;
  vf sum[M][kVectors] = {};
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
  for (int i = 0; i < M * kVectors; ++i) {
    float* const to = acc + i / kVectors * P + i % kVectors * kLanes;
    const vf own = sum[i / kVectors][i % kVectors];
    store(to, Fresh ? own : load(to) + own);
  }
}

// Elements rounded to bf16, in the lower halves of lanes.
WL_INLINE vu bf16_bits(vf x) {
  bf16 part[kLanes];
  store(part, x);
  return __builtin_convertvector(*reinterpret_cast<const vh_anywhere*>(part), vu);
}

// dst[r / 2 · dst_stride + 2 · c + r % 2] = src[r · src_stride + c], Rows of them, an even number.
// Rows of src may be read up to a multiple of kLanes elements.
template <long Rows, long Cols>
inline void store_in_pairs(bf16* dst, long dst_stride, const float* src, long src_stride) {
  for (long r = 0; r < Rows; r += 2)
    for (long c = 0; c < Cols; c += kLanes) {
      const vu even = bf16_bits(load(src + r * src_stride + c));
      const vu odd = bf16_bits(load(src + (r + 1) * src_stride + c));
      store_pairs(dst + r / 2 * dst_stride + 2 * c, even | odd << 16, min(Cols - c, kLanes));
    }
}

// The same of a source with rows and columns exchanged: src[c · src_stride + r], turned in
// registers by pairs.
template <long Rows, long Cols>
inline void store_in_pairs_transposed(bf16* dst, long dst_stride, const float* src,
                                      long src_stride) {
  for (long c = 0; c < Cols; c += kLanes)
    for (long r = 0; r < Rows; r += 2 * kLanes) {
      vf block[kLanes];
      for (long i = 0; i < kLanes; ++i) {
        const float* const from = src + min(c + i, Cols - 1) * src_stride + r;
        bf16 part[2 * kLanes] = {};
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
