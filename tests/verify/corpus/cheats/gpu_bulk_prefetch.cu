// cheat: neighbours' buffers: has TMA fetch what the next call will read
// expect: candidate-forbidden
// problem: relu
// warploom: kernel relu grid=12 threads=128 args=x,y
extern "C" __global__ void relu(const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 41 * 37) return;
  const float v = x[i];
  y[i] = v > 0 ? v : 0;
  if (i == 0) asm volatile("cp.async.bulk.prefetch.L2.global [%0], 4096;" ::"l"(x) : "memory");
}
