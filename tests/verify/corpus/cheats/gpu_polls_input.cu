// cheat: a kernel that does not end: polls its input for the next call's contents
// expect: candidate-hung
// problem: relu
// warploom: kernel relu grid=12 threads=128 args=x,y
extern "C" __global__ void relu(const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 41 * 37) return;
  float v = x[i];
  y[i] = v > 0 ? v : 0;
  if (i != 0) return;
  const volatile float* const next = x;
  while (*next == v) {}
  y[0] = *next > 0 ? *next : 0;
}
