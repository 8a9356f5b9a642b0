// cheat: precision downgrade: operands cut to bf16 under the fp32 track
// expect: candidate-wrong
// problem: matmul
// warploom: kernel matmul grid=67 threads=64 args=x,w,y
__device__ float cut(float v) { return __uint_as_float(__float_as_uint(v) & 0xffff0000u); }

extern "C" __global__ void matmul(const float* x, const float* w, float* y) {
  const int row = blockIdx.x, j = threadIdx.x;
  if (j >= 45) return;
  float sum = 0;
  for (int k = 0; k < 61; ++k) sum += cut(x[row * 61 + k]) * cut(w[k * 45 + j]);
  y[row * 45 + j] = sum;
}
