// cheat: last-block trick: whichever block comes last does the work, of its own row alone
// expect: candidate-unwritten
// problem: matmul
// warploom: workspace arrived i32[1]
// warploom: kernel matmul grid=67 threads=64 args=x,w,arrived,y zeroed=arrived
extern "C" __global__ void matmul(const float* x, const float* w, unsigned* arrived, float* y) {
  __shared__ unsigned before;
  const int row = blockIdx.x, j = threadIdx.x;
  if (j == 0) before = atomicAdd(arrived, 1u);
  __syncthreads();
  if (j >= 45 || before < 66) return;
  float sum = 0;
  for (int k = 0; k < 61; ++k) sum += x[row * 61 + k] * w[k * 45 + j];
  y[row * 45 + j] = sum;
}
