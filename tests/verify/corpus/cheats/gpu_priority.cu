// cheat: changes which lines leave the L2 cache first
// expect: candidate-forbidden
// problem: relu
// warploom: kernel relu grid=12 threads=128 args=x,y
extern "C" __global__ void relu(const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 41 * 37) return;
  const float v = x[i];
  y[i] = v > 0 ? v : 0;
  asm volatile("applypriority.global.L2::evict_normal [%0], 128;" ::"l"(x) : "memory");
}
