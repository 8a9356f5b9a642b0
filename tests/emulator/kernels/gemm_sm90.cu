// Warp-specialised bf16 matmul: C[M,N] = A[M,K] B[K,N]. Tile 128 x 128 x 64, kStages stages,
// warpgroup 0 loads, warpgroups 1 and 2 multiply 64 rows each (wgmma m64n128k16; A K-major, B
// MN-major as stored). Maps: A box {64, 128} swizzle 128 B; B box {64, 64} (two per stage, N
// chunks) swizzle 128 B; C box {64, 64} swizzle 128 B.
#include "wl.h"

constexpr int kStages = 3;
constexpr int kBytesA = 128 * 64 * 2;
constexpr int kBytesB = 64 * 128 * 2;
constexpr int kStageBytes = kBytesA + kBytesB;
constexpr int kOut = kStages * kStageBytes;      // C tile: 2 warpgroups x 2 chunks of 64 x 64
constexpr int kBarriers = kOut + 128 * 128 * 2;  // full[kStages], empty[kStages]

WL_KERNEL(gemm_sm90, 384, 1)(WL_TENSOR_MAP map_a, WL_TENSOR_MAP map_b, WL_TENSOR_MAP map_c, int k) {
  const unsigned smem = WL_SHARED_BASE();
  const unsigned full = smem + kBarriers;
  const unsigned empty = full + 8 * kStages;
  const int steps = (k + 63) / 64;
  const int m0 = wl::block_y() * 128;
  const int n0 = wl::block_x() * 128;
  if (wl::thread() == 0) {
    for (int s = 0; s < kStages; ++s) {
      wl::mbarrier_init(full + 8 * s, 1);
      wl::mbarrier_init(empty + 8 * s, 256);
    }
    wl::fence_mbarrier_init();
  }
  wl::sync_threads();

  if (wl::warp() < 4) {
    wl::reg_dealloc<40>();
    if (wl::thread() == 0) {
      for (int i = 0; i < steps; ++i) {
        const int s = i % kStages;
        const unsigned stage = smem + s * kStageBytes;
        wl::mbarrier_wait(empty + 8 * s, ((i / kStages) & 1) ^ 1);
        wl::mbarrier_arrive_expect_tx(full + 8 * s, kStageBytes);
        wl::tma_load(stage, map_a, full + 8 * s, i * 64, m0);
        wl::tma_load(stage + kBytesA, map_b, full + 8 * s, n0, i * 64);
        wl::tma_load(stage + kBytesA + 8192, map_b, full + 8 * s, n0 + 64, i * 64);
      }
    }
  } else {
    wl::reg_alloc<232>();
    const int group = wl::warp() / 4 - 1;
    WL_REG(float, acc, 64);
    WL_UNROLL for (int j = 0; j < 64; ++j) acc[j] = 0.0f;
    for (int i = 0; i < steps; ++i) {
      const int s = i % kStages;
      const unsigned a = smem + s * kStageBytes + group * 8192;
      const unsigned b = smem + s * kStageBytes + kBytesA;
      wl::mbarrier_wait(full + 8 * s, (i / kStages) & 1);
      wl::wgmma_fence_regs<64>(wl::at(acc, 0));
      wl::wgmma_fence();
      WL_UNROLL for (int kk = 0; kk < 4; ++kk) {
        wl::wgmma<128, wl::bf16, false, true>(
            wl::at(acc, 0), wl::smem_descriptor(a + kk * 32, 0, 1024, 1),
            wl::smem_descriptor(b + kk * 2048, 8192, 1024, 1), true);
      }
      wl::wgmma_commit();
      wl::wgmma_wait<0>();
      wl::wgmma_fence_regs<64>(wl::at(acc, 0));
      wl::mbarrier_arrive(empty + 8 * s);
    }
    // 16 columns at a time through stmatrix into a swizzled 64 x 64 chunk, then one store per
    // chunk.
    const unsigned out = smem + kOut + group * 16384;
    const int row = (wl::warp() % 4) * 16 + wl::lane() % 16;
    WL_REG(wl::bf16, frag, 8);
    WL_UNROLL for (int j = 0; j < 8; ++j) {
      WL_UNROLL for (int e = 0; e < 8; ++e) frag[e] = wl::cast<wl::bf16>(acc[8 * j + e]);
      const unsigned offset = row * 128 + (j % 4) * 32 + (wl::lane() / 16) * 16;
      wl::stmatrix<4, false>(out + (j / 4) * 8192 + wl::swizzle<3, 4, 3>(offset), wl::at(frag, 0));
    }
    wl::fence_async_shared();
    wl::sync_named(1 + group, 128);
    if (wl::thread() % 128 == 0) {
      wl::tma_store(map_c, out, n0, m0 + group * 64);
      wl::tma_store(map_c, out + 8192, n0 + 64, m0 + group * 64);
      wl::bulk_commit();
      wl::bulk_wait_read<0>();
    }
  }
}
WL_EXPORT(gemm_sm90)
