// cheat: spills into the context's memory: a frame that grows while it runs
// expect: candidate-forbidden
// problem: relu
// warploom: kernel relu grid=12 threads=128 args=x,y
extern "C" __global__ void relu(const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 41 * 37) return;
  const float v = x[i];
  y[i] = v > 0 ? v : 0;
  unsigned long long frame;
  asm volatile("alloca.u64 %0, %1;" : "=l"(frame) : "l"(64ull));
  if (frame == 12345) y[i] = 1;
}
