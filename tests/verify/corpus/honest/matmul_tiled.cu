// control: a matmul in tiles of 16 by 16 through shared memory
// expect: accepted
// problem: matmul
// warploom: kernel matmul grid=3,5 threads=256 args=x,w,y
enum { M = 67, K = 61, N = 45, T = 16 };

extern "C" __global__ void matmul(const float* x, const float* w, float* y) {
  __shared__ float left[T][T], right[T][T + 1];
  const int i = threadIdx.x / T, j = threadIdx.x % T, row = blockIdx.y * T + i, column = blockIdx.x * T + j;
  float sum = 0;
  for (int from = 0; from < K; from += T) {
    left[i][j] = row < M && from + j < K ? x[row * K + from + j] : 0;
    right[i][j] = from + i < K && column < N ? w[(from + i) * N + column] : 0;
    __syncthreads();
    for (int k = 0; k < T; ++k) sum += left[i][k] * right[k][j];
    __syncthreads();
  }
  if (row < M && column < N) y[row * N + column] = sum;
}
