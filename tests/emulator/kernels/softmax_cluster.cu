// Softmax over rows of n floats, a cluster of two blocks a row: each block reduces half a row, the
// halves meet through distributed shared memory. 128 threads, n a multiple of 1024 and at most
// 4096.
#include "wl.h"

WL_FN float block_reduce(unsigned scratch, float x, bool maximum) {
  WL_UNROLL for (int d = 16; d > 0; d /= 2) {
    const float y = wl::shfl_xor(x, d);
    x = maximum ? wl::max(x, y) : wl::add(x, y);
  }
  WL_REG(float, mine, 1);
  mine[0] = x;
  if (wl::lane() == 0) wl::st_shared<4>(scratch + 4 * wl::warp(), wl::at(mine, 0));
  wl::sync_threads();
  WL_REG(float, all, 4);
  wl::ld_shared<16>(wl::at(all, 0), scratch);
  x = all[0];
  WL_UNROLL for (int i = 1; i < 4; ++i) x = maximum ? wl::max(x, all[i]) : wl::add(x, all[i]);
  return x;
}

// The value of both blocks: mine and the other's, exchanged through stage in shared memory.
WL_FN float other_half(unsigned stage, float x) {
  WL_REG(float, value, 1);
  value[0] = x;
  const int peer = wl::cluster_rank() ^ 1;
  if (wl::thread() == 0) wl::st_shared_cluster<4>(wl::mapa(stage, peer), wl::at(value, 0));
  wl::cluster_sync();
  wl::ld_shared<4>(wl::at(value, 0), stage);
  return value[0];
}

WL_KERNEL_CLUSTER(softmax_cluster, 128, 1, 2, 1, 1)(const float* x, float* y, int n) {
  const unsigned smem = WL_SHARED_BASE();
  const int half = n / 2;
  const int row = wl::block_x() / 2;
  const int first = row * n + wl::cluster_rank() * half + wl::thread() * 4;
  WL_REG(float, v, 16);
  wl::cluster_sync();
  float m = -1e30f;
  WL_UNROLL for (int i = 0; i < 4; ++i) {
    wl::ld_global_stream<16>(wl::at(v, 4 * i), x + first + i * 512, i * 512 < half, -1e30f);
    WL_UNROLL for (int j = 0; j < 4; ++j) m = wl::max(m, v[4 * i + j]);
  }
  m = block_reduce(smem, m, true);
  m = wl::max(m, other_half(smem + 32, m));
  float sum = 0.0f;
  WL_UNROLL for (int i = 0; i < 16; ++i) {
    v[i] = wl::exp(wl::sub(v[i], m));
    sum = wl::add(sum, v[i]);
  }
  sum = block_reduce(smem + 16, sum, false);
  sum = wl::add(sum, other_half(smem + 36, sum));
  const float scale = wl::reciprocal(sum);
  WL_UNROLL for (int i = 0; i < 16; ++i) v[i] = wl::mul(v[i], scale);
  WL_UNROLL for (int i = 0; i < 4; ++i)
      wl::st_global<16>(y + first + i * 512, wl::at(v, 4 * i), i * 512 < half);
}
WL_EXPORT(softmax_cluster)
