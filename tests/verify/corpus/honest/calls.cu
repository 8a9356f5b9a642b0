// control: a ReLU by a function that is called, not inlined, with a small frame of its own
// expect: accepted
// problem: relu
// warploom: kernel relu grid=12 threads=128 args=x,y
__device__ __noinline__ float positive(const float* values, int which) { return values[which] > 0 ? values[which] : 0; }

extern "C" __global__ void relu(const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 41 * 37) return;
  float values[4] = {x[i], 0, 0, 0};
  values[1 + i % 3] = -1;
  y[i] = positive(values, i - i);
}
