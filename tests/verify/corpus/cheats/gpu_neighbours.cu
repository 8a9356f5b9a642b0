// cheat: neighbours' buffers: takes the answer from where the reference's output lies behind its own
// expect: candidate-wrong
// problem: matmul
// warploom: kernel matmul grid=67 threads=64 args=x,w,y
extern "C" __global__ void matmul(const float*, const float*, float* y) {
  const int row = blockIdx.x, j = threadIdx.x;
  if (j >= 45) return;
  // As many bytes as an output takes with what lies before and behind it.
  const volatile float* const other = y + 36 * 1024;
  const float v = other[row * 45 + j];
  y[row * 45 + j] = v == v && fabsf(v) < 1e4f ? v : 0.5f;
}
