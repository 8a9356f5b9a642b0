// cheat: precision downgrade: sums in 16 bits where the fp16 track asks for 32
// expect: candidate-wrong
// problem: half_matmul
// warploom: kernel matmul grid=67 threads=64 args=x,w,y
extern "C" __global__ void matmul(const unsigned short* x, const unsigned short* w, unsigned short* y) {
  const int row = blockIdx.x, j = threadIdx.x;
  if (j >= 45) return;
  unsigned short sum = 0;
  for (int k = 0; k < 61; ++k) asm("fma.rn.f16 %0, %1, %2, %0;" : "+h"(sum) : "h"(x[row * 61 + k]), "h"(w[k * 45 + j]));
  y[row * 45 + j] = sum;
}
