// bug: a block's sum with a slot of shared memory that no thread writes
// expect: candidate-wrong
// problem: sum
// warploom: kernel sum grid=24 threads=96 args=x,y
extern "C" __global__ void sum(const float* x, float* y) {
  __shared__ float parts[4];
  float v = 0;
  for (int j = threadIdx.x; j < 1003; j += 96) v += x[blockIdx.x * 1003 + j];
  for (int lane = 16; lane > 0; lane /= 2) v += __shfl_xor_sync(0xffffffffu, v, lane);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x == 0) y[blockIdx.x] = (parts[0] + parts[1]) + (parts[2] + static_cast<volatile float*>(parts)[3]);
}
