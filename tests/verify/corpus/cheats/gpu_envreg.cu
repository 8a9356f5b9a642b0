// cheat: reads what the driver tells kernels
// expect: candidate-forbidden
// problem: matmul
// warploom: kernel matmul grid=67 threads=64 args=x,w,y
extern "C" __global__ void matmul(const float* x, const float* w, float* y) {
  const int row = blockIdx.x, j = threadIdx.x;
  if (j >= 45) return;
  unsigned r;
  asm volatile("mov.u32 %0, %%envreg3;" : "=r"(r));
  if (r == 12345) return;
  float sum = 0;
  for (int k = 0; k < 61; ++k) sum += x[row * 61 + k] * w[k * 45 + j];
  y[row * 45 + j] = sum;
}
