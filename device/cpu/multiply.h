// Products of matrices, in tiles that stay in vector registers for the whole of k.
//
//   acc[i][j] += Σ_p a[i·AM + p·AK] · b[p·BK + j]      i < M, j < N; acc at a pitch of P floats
//
// Of each row of b the tile takes ⌈N / kLanes⌉ vectors, of each element of a one broadcast, for M
// times as many fused multiply-adds. Worked example, AVX-512: 6 rows of 64 columns are 24 vectors
// of sums, 4 of b and one broadcast, 29 of 32 registers; 10 loads serve 24 multiply-adds.
//
// a and b lie in scratch memory or in the tensors themselves, in fp32 or in 16 bits that loading
// converts. Sums begin at 0 in registers; what acc holds is added at the end, unless acc begins at
// 0 itself (`Fresh`), so that products of several blocks of k are summed block by block.
#pragma once
#include "wl_cpu.h"

namespace wl {
// A row of N elements as vectors. The last may be a part of one: what lies behind the row is not
// read.
template <long N> inline constexpr int kVectorsOf = static_cast<int>((N + kLanes - 1) / kLanes);

template <long N, class T> WL_INLINE void load_vectors(vf (&row)[kVectorsOf<N>], const T* from) {
  WL_UNROLL
  for (int v = 0; v < N / kLanes; ++v)
    row[v] = load(from + v * kLanes);
  if constexpr (constexpr long rest = N % kLanes; rest != 0)
    row[N / kLanes] = load_some(from + (N - rest), 0, rest, 0);
}

// Rows of b so far apart in memory are on pages of their own, where no processor asks for the next
// ones by itself.
inline constexpr long kPagesApart = 2048;  // bytes
inline constexpr long kRowsAhead = 16;

template <long N, class T> WL_INLINE void prefetch_row(const T* row) {
  WL_UNROLL
  for (long i = 0; i < N; i += 64 / static_cast<long>(sizeof(T)))
    __builtin_prefetch(row + i);
}

template <bool Fresh, int M, long N, long AM, long AK, long BK, long P, class A, class B>
WL_INLINE void multiply_here(float* acc, const A* a, const B* b, long k) {
  constexpr int kVectors = kVectorsOf<N>;
  vf sum[M][kVectors] = {};
  WL_UNROLL_4
  for (long p = 0; p < k; ++p) {
    vf row[kVectors];
    load_vectors<N>(row, b + p * BK);
    if constexpr (BK * sizeof(B) > kPagesApart) prefetch_row<N>(b + (p + kRowsAhead) * BK);
    WL_UNROLL
    for (int i = 0; i < M; ++i) {
      const vf x = splat(load_one(a + i * AM + p * AK));
      WL_UNROLL
      for (int v = 0; v < kVectors; ++v)
        sum[i][v] = fma(x, row[v], sum[i][v]);
    }
  }
  WL_UNROLL
  for (int i = 0; i < M * kVectors; ++i) {
    float* const to = acc + i / kVectors * P + i % kVectors * kLanes;
    const vf own = sum[i / kVectors][i % kVectors];
    store(to, Fresh ? own : load(to) + own);
  }
}

// A tile that takes all registers.
template <bool Fresh, int M, long N, long AM, long AK, long BK, long P, class A, class B>
WL_CALLED void multiply_tile(float* acc, const A* a, const B* b, long k) {
  multiply_here<Fresh, M, N, AM, AK, BK, P>(acc, a, b, k);
}

// A product of M rows and N columns in tiles of R rows and C columns, the last of which may be
// smaller.
template <bool Fresh, long M, long N, int R, long AM, long AK, long BK, long P, class A, class B>
WL_INLINE void multiply_rows(float* acc, const A* a, const B* b, long k) {
  for (long r = 0; r + R <= M; r += R)
    multiply_here<Fresh, R, N, AM, AK, BK, P>(acc + r * P, a + r * AM, b, k);
  if constexpr (constexpr long r = M / R * R; r < M)
    multiply_here<Fresh, M - r, N, AM, AK, BK, P>(acc + r * P, a + r * AM, b, k);
}

template <bool Fresh, long M, long N, int R, long C, long AM, long AK, long BK, long P, class A,
          class B>
WL_INLINE void multiply(float* acc, const A* a, const B* b, long k) {
  for (long c = 0; c + C <= N; c += C)
    multiply_rows<Fresh, M, C, R, AM, AK, BK, P>(acc + c, a, b + c, k);
  if constexpr (constexpr long c = N / C * C; c < N)
    multiply_rows<Fresh, M, N - c, R, AM, AK, BK, P>(acc + c, a, b + c, k);
}
}  // namespace wl
