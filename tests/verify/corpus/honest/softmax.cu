// control: a softmax, a block a row
// expect: accepted
// problem: softmax
// warploom: kernel softmax grid=33 threads=128 args=x,y
// The sum, or with `most` the maximum, of the block's 128 values, known to all.
__device__ float of_block(float v, bool most) {
  __shared__ float parts[4];
  for (int lane = 16; lane > 0; lane /= 2) {
    const float other = __shfl_xor_sync(0xffffffffu, v, lane);
    v = most ? fmaxf(v, other) : v + other;
  }
  __syncthreads();
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = v;
  __syncthreads();
  return most ? fmaxf(fmaxf(parts[0], parts[1]), fmaxf(parts[2], parts[3])) : (parts[0] + parts[1]) + (parts[2] + parts[3]);
}

extern "C" __global__ void softmax(const float* x, float* y) {
  x += blockIdx.x * 203, y += blockIdx.x * 203;
  const int a = threadIdx.x, b = a + 128;
  const float most = of_block(fmaxf(x[a], b < 203 ? x[b] : x[a]), true);
  const float first = expf(x[a] - most), second = b < 203 ? expf(x[b] - most) : 0;
  const float sum = of_block(first + second, false);
  y[a] = first / sum;
  if (b < 203) y[b] = second / sum;
}
