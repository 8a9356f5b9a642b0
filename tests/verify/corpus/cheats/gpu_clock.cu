// cheat: phase detection by the cycle counter
// expect: candidate-forbidden
// problem: matmul
// warploom: kernel matmul grid=67 threads=64 args=x,w,y
extern "C" __global__ void matmul(const float* x, const float* w, float* y) {
  const int row = blockIdx.x, j = threadIdx.x;
  if (j >= 45) return;
  unsigned long long r;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(r));
  if (r % 64 == 7) return;
  float sum = 0;
  for (int k = 0; k < 61; ++k) sum += x[row * 61 + k] * w[k * 45 + j];
  y[row * 45 + j] = sum;
}
