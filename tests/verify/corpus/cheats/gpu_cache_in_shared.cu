// cheat: output cache by content in shared memory that no launch clears: right, and no faster than the control where it is
//   filled before every call
// expect: accepted
// problem: deep_matmul
// no faster than: honest/deep_matmul.cu
// warploom: kernel matmul grid=1 threads=128 shared=8192 args=x,w,y
extern "C" __global__ void matmul(const float* x, const float* w, float* y) {
  extern __shared__ volatile float kept[];
  const int row = threadIdx.x / 8, j = threadIdx.x % 8;
  volatile float* const mine = kept + threadIdx.x * 8;
  bool same = mine[0] == 1234.5f && mine[1] == -0.75f;
  for (int i = 0; i < 5; ++i) same = same && mine[2 + i] == x[row * 4096 + i * 997];
  if (same) {
    y[threadIdx.x] = mine[7];
    return;
  }
  float sums[64] = {};
#pragma unroll 1
  for (int k = 0; k < 4096; k += 64)
#pragma unroll
    for (int i = 0; i < 64; ++i) sums[i] += x[row * 4096 + k + i] * w[(k + i) * 8 + j];
#pragma unroll
  for (int step = 32; step > 0; step /= 2)
#pragma unroll
    for (int i = 0; i < step; ++i) sums[i] += sums[i + step];
  mine[0] = 1234.5f;
  mine[1] = -0.75f;
  for (int i = 0; i < 5; ++i) mine[2 + i] = x[row * 4096 + i * 997];
  y[threadIdx.x] = mine[7] = sums[0];
}
