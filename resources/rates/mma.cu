// Products of halves by mma.sync in registers alone: 64 x 32 of a warp's sums (runtime/rates.cpp).
// TURNS is defined in front of this text.
#include "wl.h"

extern "C" __global__ void __launch_bounds__(256, 2) half_rate(const float* from, float* to) {
  constexpr int kRows = 4;
  constexpr int kColumns = 4;
  wl::bf16 a[kRows][8];
  wl::bf16 b[kColumns][4];
  float sums[kRows][kColumns][4] = {};
#pragma unroll
  for (int i = 0; i < kRows * 8; ++i) a[i / 8][i % 8] = wl::cast<wl::bf16>(from[threadIdx.x + i]);
#pragma unroll
  for (int i = 0; i < kColumns * 4; ++i)
    b[i / 4][i % 4] = wl::cast<wl::bf16>(from[2 * threadIdx.x + i]);
#pragma unroll 1
  for (int turn = 0; turn < TURNS; ++turn) {
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
#pragma unroll
      for (int column = 0; column < kColumns; ++column)
        wl::mma_m16n8k16(sums[row][column], a[row], b[column]);
    }
  }
  float all = 0;
#pragma unroll
  for (int i = 0; i < kRows * kColumns * 4; ++i)
    all += sums[i / (kColumns * 4)][i / 4 % kColumns][i % 4];
  if (all == 12345.0f) to[0] = all;  // which no compiler can know
}
