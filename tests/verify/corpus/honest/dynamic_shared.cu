// control: a matmul with a row and all of the other operand in 96 KB of dynamic shared memory
// expect: accepted
// problem: matmul
// warploom: kernel matmul grid=67 threads=64 shared=98304 args=x,w,y
extern "C" __global__ void matmul(const float* x, const float* w, float* y) {
  extern __shared__ float held[];
  float* const right = held + 16384;
  for (int i = threadIdx.x; i < 61; i += 64) held[i] = x[blockIdx.x * 61 + i];
  for (int i = threadIdx.x; i < 61 * 45; i += 64) right[i] = w[i];
  __syncthreads();
  if (threadIdx.x >= 45) return;
  float sum = 0;
  for (int k = 0; k < 61; ++k) sum += held[k] * right[k * 45 + threadIdx.x];
  y[blockIdx.x * 45 + threadIdx.x] = sum;
}
