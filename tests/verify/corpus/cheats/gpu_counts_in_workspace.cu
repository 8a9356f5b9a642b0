// cheat: super-batching, last-block trick: counts its blocks in a workspace, and works only on the first thousand
// expect: candidate-unwritten
// problem: matmul
// warploom: workspace calls i32[1]
// warploom: kernel matmul grid=67 threads=64 args=x,w,calls,y
extern "C" __global__ void matmul(const float* x, const float* w, unsigned* calls, float* y) {
  __shared__ unsigned before;
  const int row = blockIdx.x, j = threadIdx.x;
  if (j == 0) before = atomicAdd(calls, 1u);
  __syncthreads();
  if (j >= 45 || before > 1000) return;
  float sum = 0;
  for (int k = 0; k < 61; ++k) sum += x[row * 61 + k] * w[k * 45 + j];
  y[row * 45 + j] = sum;
}
