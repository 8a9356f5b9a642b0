extern "C" __global__ void __launch_bounds__(256) plain_matmul(const In* a, const In* b, Out* c PARAMETERS) {
  __shared__ float tile_a[16][64 + 4];
  __shared__ float tile_b[16][64 + 4];
  const long long tiles_n = (kN + 63) / 64, tiles_m = (kM + 63) / 64;
  const long long batch = blockIdx.x / (tiles_m * tiles_n);
  const long long m0 = blockIdx.x / tiles_n % tiles_m * 64, n0 = blockIdx.x % tiles_n * 64;
  a += kBatchedA ? batch * kM * kK : 0;
  b += kBatchedB ? batch * kK * kN : 0;
  c += batch * kM * kN;
  const int t = threadIdx.x, tx = t % 16, ty = t / 16;
  float sum[4][4] = {};
  for (long long k0 = 0; k0 < kK; k0 += 16) {
    for (int e = t; e < 16 * 64; e += 256) {
      // Neighbouring threads read neighbouring addresses, whichever way the operand lies.
      const int ka = kTransposeA ? e / 64 : e % 16, ma = kTransposeA ? e % 64 : e / 16;
      const bool in_a = m0 + ma < kM && k0 + ka < kK;
      tile_a[ka][ma] = in_a ? load(a[kTransposeA ? (k0 + ka) * kM + m0 + ma : (m0 + ma) * kK + k0 + ka]) : 0.0f;
      const int kb = kTransposeB ? e % 16 : e / 64, nb = kTransposeB ? e / 16 : e % 64;
      const bool in_b = n0 + nb < kN && k0 + kb < kK;
      tile_b[kb][nb] = in_b ? load(b[kTransposeB ? (n0 + nb) * kK + k0 + kb : (k0 + kb) * kN + n0 + nb]) : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 16; ++k) {
      float x[4], y[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) x[i] = tile_a[k][ty * 4 + i];
#pragma unroll
      for (int j = 0; j < 4; ++j) y[j] = tile_b[k][tx * 4 + j];
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) sum[i][j] += x[i] * y[j];
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const long long row = m0 + ty * 4 + i, col = n0 + tx * 4 + j;
      if (row < kM && col < kN) store(c + row * kN + col, activate(biased(sum[i][j], BIAS, batch, row, col)));
    }
}
