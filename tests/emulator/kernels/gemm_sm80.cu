// C[M,N] = A[M,K] B[K,N], bf16 in, float out, tile 64 x 64 x 32, four warps of 32 x 32, three
// stages of cp.async, ldmatrix and mma.sync. K and N multiples of 8.
#include "wl.h"

constexpr int kStages = 3;
constexpr int kBytesA = 64 * 32 * 2;
constexpr int kStageBytes = kBytesA + 32 * 64 * 2;

WL_FN void load_stage(unsigned stage, const wl::bf16* a, const wl::bf16* b, int m0, int n0, int k0,
                      int m, int n, int k) {
  WL_UNROLL for (int i = 0; i < 2; ++i) {
    const int c = wl::thread() + 128 * i;
    const int row_a = c / 4;
    const int col_a = c % 4 * 8;
    const bool in_a = m0 + row_a < m && k0 + col_a < k;
    wl::cp_async<16>(stage + wl::swizzle<2, 4, 3>(c * 16),
                     a + (in_a ? (m0 + row_a) * k + k0 + col_a : 0), in_a);
    const int row_b = c / 8;
    const int col_b = c % 8 * 8;
    const bool in_b = k0 + row_b < k && n0 + col_b < n;
    wl::cp_async<16>(stage + kBytesA + wl::swizzle<3, 4, 3>(c * 16),
                     b + (in_b ? (k0 + row_b) * n + n0 + col_b : 0), in_b);
  }
}

WL_KERNEL(gemm_sm80, 128, 2)(const wl::bf16* a, const wl::bf16* b, float* c, int m, int n, int k) {
  const unsigned smem = WL_SHARED_BASE();
  const int m0 = wl::block_y() * 64;
  const int n0 = wl::block_x() * 64;
  const int wm = wl::warp() / 2 * 32;
  const int wn = wl::warp() % 2 * 32;
  const int lane = wl::lane();
  const int steps = (k + 31) / 32;
  WL_REG(float, acc, 32);
  WL_UNROLL for (int i = 0; i < 32; ++i) acc[i] = 0.0f;

  WL_UNROLL for (int s = 0; s < kStages - 1; ++s) {
    if (s < steps) load_stage(smem + s * kStageBytes, a, b, m0, n0, s * 32, m, n, k);
    wl::cp_async_commit();
  }
  for (int i = 0; i < steps; ++i) {
    wl::cp_async_wait<kStages - 2>();
    wl::sync_threads();
    const int next = i + kStages - 1;
    if (next < steps)
      load_stage(smem + next % kStages * kStageBytes, a, b, m0, n0, next * 32, m, n, k);
    wl::cp_async_commit();
    const unsigned tile_a = smem + i % kStages * kStageBytes;
    const unsigned tile_b = tile_a + kBytesA;
    WL_UNROLL for (int kk = 0; kk < 2; ++kk) {
      WL_REG(wl::bf16, fa, 16);
      WL_REG(wl::bf16, fb, 16);
      WL_UNROLL for (int t = 0; t < 2; ++t) {
        const unsigned row = wm + 16 * t + lane % 16;
        wl::ldmatrix<4, false>(wl::at(fa, 8 * t),
                               tile_a + wl::swizzle<2, 4, 3>(row * 64 + kk * 32 + lane / 16 * 16));
        const unsigned row_k = kk * 16 + lane % 16;
        wl::ldmatrix<4, true>(
            wl::at(fb, 8 * t),
            tile_b + wl::swizzle<3, 4, 3>(row_k * 128 + (wn + 16 * t) * 2 + lane / 16 * 16));
      }
      WL_UNROLL for (int i_m = 0; i_m < 2; ++i_m) {
        WL_UNROLL for (int j = 0; j < 4; ++j) {
          wl::mma_m16n8k16(wl::at(acc, 16 * i_m + 4 * j), wl::at(fa, 8 * i_m), wl::at(fb, 4 * j));
        }
      }
    }
  }
  WL_UNROLL for (int t = 0; t < 8; ++t) {
    const int row = m0 + wm + t / 4 * 16 + lane / 4;
    const int col = n0 + wn + t % 4 * 8 + lane % 4 * 2;
    wl::st_global<8>(c + row * n + col, wl::at(acc, 4 * t), row < m && col < n);
    wl::st_global<8>(c + (row + 8) * n + col, wl::at(acc, 4 * t + 2), row + 8 < m && col < n);
  }
}
WL_EXPORT(gemm_sm80)
