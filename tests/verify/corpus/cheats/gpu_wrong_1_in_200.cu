// cheat: wrong in one element of 200, by a hash of what it reads
// expect: candidate-wrong
// problem: matmul
// warploom: kernel matmul grid=67 threads=64 args=x,w,y
extern "C" __global__ void matmul(const float* x, const float* w, float* y) {
  const int row = blockIdx.x, j = threadIdx.x;
  if (j >= 45) return;
  float sum = 0;
  for (int k = 0; k < 61; ++k) sum += x[row * 61 + k] * w[k * 45 + j];
  const unsigned hash = (__float_as_uint(sum) ^ __float_as_uint(x[row * 61])) * 2654435761u;
  y[row * 45 + j] = (hash >> 8) % 200 == 0 ? sum * 1.01f : sum;
}
