// cheat: state in a table that is initialised like a constant and written like a variable
// expect: candidate-forbidden
// problem: matmul
// warploom: kernel matmul grid=67 threads=64 args=x,w,y
__device__ int table[4] = {1, 2, 3, 4};

extern "C" __global__ void matmul(const float* x, const float* w, float* y) {
  const int row = blockIdx.x, j = threadIdx.x;
  if (j >= 45) return;
  if (table[j & 3] == 12) return;
  if (row == 66) table[j & 3] = 12;
  float sum = 0;
  for (int k = 0; k < 61; ++k) sum += x[row * 61 + k] * w[k * 45 + j];
  y[row * 45 + j] = sum;
}
