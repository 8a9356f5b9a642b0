// control: a GELU by CUDA's erff
// expect: accepted
// problem: gelu
// warploom: kernel gelu grid=12 threads=128 args=x,y
extern "C" __global__ void gelu(const float* x, float* y) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  if (i < 41 * 37) y[i] = x[i] * 0.5f * (1 + erff(x[i] * 0.70710678f));
}
