// The matrix product of one register block.
//
//   acc[i][j] += Σ_p a[i·AM + p·AK] · b[p·BK + j]      i < M, j < NV·kLanes, acc at a pitch of P floats
//
// The M × NV vectors of acc stay in registers for the whole of k: an element of a is broadcast, a row of b is NV vectors. M·NV + NV
// + 1 must not exceed the vector registers. Each product is fused with its addition.
#pragma once

#include "functions.h"

namespace wl {

template <int M, int NV, long AM, long AK, long BK, long P>
WL_INLINE void mma(float* acc, const float* a, const float* b, long k) {
  vf c[M][NV];
  WL_UNROLL
  for (int i = 0; i < M; ++i) {
    WL_UNROLL
    for (int v = 0; v < NV; ++v) c[i][v] = load(acc + i * P + v * kLanes);
  }
  WL_UNROLL_4
  for (long p = 0; p < k; ++p) {
    vf row[NV];
    WL_UNROLL
    for (int v = 0; v < NV; ++v) row[v] = load(b + p * BK + v * kLanes);
    WL_UNROLL
    for (int i = 0; i < M; ++i) {
      const vf x = splat(a[i * AM + p * AK]);
      WL_UNROLL
      for (int v = 0; v < NV; ++v) c[i][v] = fma(x, row[v], c[i][v]);
    }
  }
  WL_UNROLL
  for (int i = 0; i < M; ++i) {
    WL_UNROLL
    for (int v = 0; v < NV; ++v) store(acc + i * P + v * kLanes, c[i][v]);
  }
}

}  // namespace wl
