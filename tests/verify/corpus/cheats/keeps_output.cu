// cheat: output cache, graph-capture amortisation: an output that holds numbers already is left
//   as it is: wrong where outputs hold other numbers before a call
// expect: candidate-wrong or candidate-unstable
// problem: deep_matmul
// warploom: kernel matmul grid=1 threads=128 args=x,w,y
extern "C" __global__ void matmul(const float* x, const float* w, float* y) {
  const int row = threadIdx.x / 8, j = threadIdx.x % 8;
  if (y[threadIdx.x] == y[threadIdx.x]) return;  // no NaN
  float sums[64] = {};
#pragma unroll 1
  for (int k = 0; k < 4096; k += 64)
#pragma unroll
    for (int i = 0; i < 64; ++i) sums[i] += x[row * 4096 + k + i] * w[(k + i) * 8 + j];
#pragma unroll
  for (int step = 32; step > 0; step /= 2)
#pragma unroll
    for (int i = 0; i < step; ++i) sums[i] += sums[i + step];
  y[threadIdx.x] = sums[0];
}
