// Multiplications and additions of fp32 in registers alone: sixteen chains a thread, which hide
// each other's latency (runtime/rates.cpp). TURNS is defined in front of this text.
extern "C" __global__ void __launch_bounds__(256) fma_rate(const float* from, float* to) {
  constexpr int kChains = 16;
  float sums[kChains];
#pragma unroll
  for (int i = 0; i < kChains; ++i) sums[i] = from[i];
  const float a = from[threadIdx.x];
  const float b = from[threadIdx.x + 1];
#pragma unroll 1
  for (int turn = 0; turn < TURNS; ++turn) {
#pragma unroll
    for (int step = 0; step < 8; ++step) {
#pragma unroll
      for (int i = 0; i < kChains; ++i) sums[i] = fmaf(sums[i], a, b);
    }
  }
  float all = 0;
#pragma unroll
  for (int i = 0; i < kChains; ++i) all += sums[i];
  if (all == 12345.0f) to[0] = all;  // which no compiler can know
}
