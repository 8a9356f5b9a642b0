// cheat: calls by address, which no reader can follow
// expect: candidate-forbidden
// problem: relu
// warploom: kernel relu grid=12 threads=128 args=x,y
__device__ __noinline__ float even(float v) { return v > 0 ? v : 0; }
__device__ __noinline__ float odd(float v) { return v < 0 ? 0 : v; }

extern "C" __global__ void relu(const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 41 * 37) return;
  const float v = x[i];
  y[i] = v > 0 ? v : 0;
  float (*const f)(float) = i % 2 ? even : odd;
  y[i] = f(v);
}
