// cheat: machine: an assertion, which writes to the host
// expect: candidate-forbidden
// problem: relu
// warploom: kernel relu grid=12 threads=128 args=x,y
extern "C" __device__ void __assertfail(const char*, const char*, unsigned, const char*, size_t);

extern "C" __global__ void relu(const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 41 * 37) return;
  const float v = x[i];
  y[i] = v > 0 ? v : 0;
  if (v != v) __assertfail("v is a number", "relu.cu", 1, "relu", 1);
}
