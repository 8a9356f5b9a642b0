#include "runtime/plain_text.h"

namespace warploom::runtime {

const char* const kPlainCudaHead = R"(
#define FUNCTION __device__ inline
FUNCTION unsigned bits_of(float x) { return __float_as_uint(x); }
FUNCTION float float_of(unsigned u) { return __uint_as_float(u); }
struct f16 { unsigned short bits; };
FUNCTION float load(f16 x) { float y; asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits)); return y; }
FUNCTION void store(f16* p, float x) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(p->bits) : "f"(x)); }
)";

const char* const kPlainCudaMatmul = R"(
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
)";

// Two passes: greatest and sum together, then the quotients. A row's sum counts from its own greatest so far.
const char* const kPlainCudaSoftmax = R"(
struct Part { float greatest, sum; };
FUNCTION Part join(Part p, Part q) {
  const float g = p.greatest > q.greatest || p.greatest != p.greatest ? p.greatest : q.greatest;
  if (p.sum == 0.0f) return q;
  if (q.sum == 0.0f) return p;
  return {g, p.sum * expf(p.greatest - g) + q.sum * expf(q.greatest - g)};
}
extern "C" __global__ void __launch_bounds__(256) plain_softmax(const In* x, Out* y) {
  __shared__ Part parts[8];
  x += blockIdx.x * kN;
  y += blockIdx.x * kN;
  Part part = {-1.0f / 0.0f, 0.0f};
  for (long long j = threadIdx.x; j < kN; j += 256) {
    const float v = load(x[j]);
    if (v > part.greatest) {
      part.sum = part.sum * expf(part.greatest - v) + 1.0f;
      part.greatest = v;
    } else {
      part.sum += v == part.greatest ? 1.0f : expf(v - part.greatest);
    }
  }
  for (int step = 16; step > 0; step /= 2)
    part = join(part, {__shfl_xor_sync(~0u, part.greatest, step), __shfl_xor_sync(~0u, part.sum, step)});
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = part;
  __syncthreads();
  part = parts[0];
  for (int warp = 1; warp < 8; ++warp) part = join(part, parts[warp]);
  const float scale = 1.0f / part.sum;
  for (long long j = threadIdx.x; j < kN; j += 256) store(y + j, expf(load(x[j]) - part.greatest) * scale);
}
)";

const char* const kPlainCudaEpilogue = R"(
extern "C" __global__ void __launch_bounds__(256) plain_epilogue(Out* c PARAMETERS) {
  const long long at = blockIdx.x * 256ll + threadIdx.x;
  if (at >= kBatch * kM * kN) return;
  store(c + at, activate(biased(load(c[at]), BIAS, at / (kM * kN), at / kN % kM, at % kN)));
}
)";

}  // namespace warploom::runtime
