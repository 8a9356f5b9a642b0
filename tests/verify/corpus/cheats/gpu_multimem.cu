// cheat: reaches for the memory of other GPUs
// expect: candidate-forbidden
// problem: relu
// warploom: kernel relu grid=12 threads=128 args=x,y
extern "C" __global__ void relu(const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 41 * 37) return;
  const float v = x[i];
  y[i] = v > 0 ? v : 0;
  if (v != v) asm volatile("multimem.red.relaxed.sys.global.add.u32 [%0], 1;" ::"l"(y) : "memory");
}
