// cheat: reads the clock in inline assembly that a reader of comments by lines does not see
// expect: candidate-forbidden
// problem: relu
// warploom: kernel relu grid=12 threads=128 args=x,y
extern "C" __global__ void relu(const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 41 * 37) return;
  const float v = x[i];
  y[i] = v > 0 ? v : 0;
  unsigned r;
  asm volatile("/*\n// */ mov.u32 %0, %%clock; /*\n*/" : "=r"(r));
  if (r % 4096 == 7) y[i] = 1;
}
