// control: a matmul that finds its columns by a constant table: constants are no state
// expect: accepted
// problem: matmul
// warploom: kernel matmul grid=67 threads=64 args=x,w,y
__constant__ int order[5] = {4, 2, 0, 3, 1};

extern "C" __global__ void matmul(const float* x, const float* w, float* y) {
  if (threadIdx.x >= 45) return;
  const int row = blockIdx.x, j = threadIdx.x / 5 * 5 + order[threadIdx.x % 5];
  float sum = 0;
  for (int k = 0; k < 61; ++k) sum += x[row * 61 + k] * w[k * 45 + j];
  y[row * 45 + j] = sum;
}
