// Products of halves by wgmma, operands in shared memory: two warpgroups of 64 x 256 sums
// (runtime/rates.cpp). TURNS is defined in front of this text.
#include "wl.h"

extern "C" __global__ void __launch_bounds__(256, 1) half_rate(const float* from, float* to) {
  constexpr int kDepth = 64;  // of a tile, whose rows are of 128 bytes
  constexpr int kRowsA = 128;
  constexpr int kRowsB = 256;
  __shared__ alignas(1024) unsigned short tiles[(kRowsA + kRowsB) * kDepth];
  for (int i = threadIdx.x; i < (kRowsA + kRowsB) * kDepth; i += 256)
    tiles[i] = wl::cast<wl::bf16>(from[(i * 37) % 4096]).bits;
  __syncthreads();
  wl::fence_async_shared();
  const auto base = static_cast<unsigned>(__cvta_generic_to_shared(tiles));
  const unsigned group = threadIdx.x / 128;
  const unsigned rows_a = base + group * (kRowsA / 2) * kDepth * 2;
  const unsigned long long a = wl::smem_descriptor(rows_a, 16, 1024, 1);
  const unsigned long long b = wl::smem_descriptor(base + kRowsA * kDepth * 2, 16, 1024, 1);
  float sums[128];
#pragma unroll
  for (int i = 0; i < 128; ++i) sums[i] = 0;
#pragma unroll 1
  for (int turn = 0; turn < TURNS; ++turn) {
    wl::wgmma_fence();
#pragma unroll
    for (int k = 0; k < 4; ++k)
      wl::wgmma<256, wl::bf16, false, false>(sums, a + 2 * k, b + 2 * k, true);
    wl::wgmma_commit();
    wl::wgmma_wait<0>();
    wl::wgmma_fence_regs<128>(sums);
  }
  float all = 0;
#pragma unroll
  for (int i = 0; i < 128; ++i) all += sums[i];
  if (all == 12345.0f) to[0] = all;  // which no compiler can know
}
