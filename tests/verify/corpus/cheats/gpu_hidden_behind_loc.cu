// cheat: reads the clock in inline assembly on a line that begins like the debugger's
// expect: candidate-forbidden
// problem: relu
// warploom: kernel relu grid=12 threads=128 args=x,y
extern "C" __global__ void relu(const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 41 * 37) return;
  const float v = x[i];
  y[i] = v > 0 ? v : 0;
  unsigned r;
  asm volatile("\n.loc 1 1 1 mov.u32 %0, %%globaltimer_lo;\n" : "=r"(r));
  if (r % 4096 == 7) y[i] = 1;
}
