// bug: adds one product too many: the last row's reads what lies behind the input
// expect: candidate-wrong
// problem: matmul
// warploom: kernel matmul grid=67 threads=64 args=x,w,y
extern "C" __global__ void matmul(const float* x, const float* w, float* y) {
  const int row = blockIdx.x, j = threadIdx.x;
  if (j >= 45) return;
  float sum = 0;
  for (int k = 0; k < 61 + (row == 66); ++k) sum += x[row * 61 + k] * w[k % 61 * 45 + j];
  y[row * 45 + j] = sum;
}
