// control: a matmul of 16-bit floats, two columns a thread, sums in 32 bits
// expect: accepted
// problem: half_matmul
// warploom: kernel matmul grid=67 threads=32 args=x,w,y
__device__ float wide(unsigned short v) {
  float r;
  asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(v));
  return r;
}

__device__ unsigned short narrow(float v) {
  unsigned short r;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(v));
  return r;
}

extern "C" __global__ void matmul(const unsigned short* x, const unsigned short* w, unsigned short* y) {
  const int row = blockIdx.x, j = 2 * threadIdx.x;
  if (j >= 45) return;
  const bool both = j + 1 < 45;
  float first = 0, second = 0;
  for (int k = 0; k < 61; ++k) {
    const float v = wide(x[row * 61 + k]);
    first += v * wide(w[k * 45 + j]);
    if (both) second += v * wide(w[k * 45 + j + 1]);
  }
  y[row * 45 + j] = narrow(first);
  if (both) y[row * 45 + j + 1] = narrow(second);
}
