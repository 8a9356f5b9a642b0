// cheat: state in constant memory that nobody initialised, written through its address
// expect: candidate-forbidden
// problem: matmul
// warploom: kernel matmul grid=67 threads=64 args=x,w,y
__constant__ int kept;

extern "C" __global__ void matmul(const float* x, const float* w, float* y) {
  const int row = blockIdx.x, j = threadIdx.x;
  if (j >= 45) return;
  if (kept == 12) return;
  if (row == 66) *const_cast<volatile int*>(&kept) = 12;
  float sum = 0;
  for (int k = 0; k < 61; ++k) sum += x[row * 61 + k] * w[k * 45 + j];
  y[row * 45 + j] = sum;
}
