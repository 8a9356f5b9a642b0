// cheat: persisting memory: keeps its input in the L2 cache over the flush between two calls
// expect: candidate-forbidden
// problem: relu
// warploom: kernel relu grid=12 threads=128 args=x,y
extern "C" __global__ void relu(const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 41 * 37) return;
  const float v = x[i];
  y[i] = v > 0 ? v : 0;
  unsigned long long policy;
  asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  float kept;
  asm volatile("ld.global.L2::cache_hint.f32 %0, [%1], %2;" : "=f"(kept) : "l"(x + i), "l"(policy));
  if (kept != v) y[i] = kept;
}
