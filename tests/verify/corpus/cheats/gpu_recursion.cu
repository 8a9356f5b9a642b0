// cheat: machine: recursion, frames of any depth
// expect: candidate-forbidden
// problem: relu
// warploom: kernel relu grid=12 threads=128 args=x,y
__device__ __noinline__ int depth(int n) {
  volatile int kept[8];
  kept[n & 7] = n;
  return n <= 0 ? 0 : depth(n - 1) + kept[n & 3] + depth(n - 2);
}

extern "C" __global__ void relu(const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 41 * 37) return;
  const float v = x[i];
  y[i] = v > 0 ? v : 0;
  if (i == 0 && depth(static_cast<int>(v * 1000)) == 12345) y[i] = 1;
}
