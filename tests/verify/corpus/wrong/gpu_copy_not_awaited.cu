// bug: reads what an asynchronous copy has not brought yet
// expect: candidate-wrong
// problem: softmax
// warploom: kernel softmax grid=33 threads=32 args=x,y
extern "C" __global__ void softmax(const float* x, float* y) {
  __shared__ float row[224];
  x += blockIdx.x * 203, y += blockIdx.x * 203;
  for (int j = threadIdx.x; j < 203; j += 32) {
    const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(row + j));
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(x + j) : "memory");
  }
  asm volatile("cp.async.commit_group;" ::: "memory");
  float most = -1e30f, sum = 0;
  for (int j = threadIdx.x; j < 203; j += 32) most = fmaxf(most, static_cast<volatile float*>(row)[j]);
  for (int lane = 16; lane > 0; lane /= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, lane));
  float parts[7];
  for (int n = 0; n < 7; ++n) parts[n] = threadIdx.x + 32 * n < 203 ? expf(row[threadIdx.x + 32 * n] - most) : 0, sum += parts[n];
  for (int lane = 16; lane > 0; lane /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, lane);
  for (int n = 0; n < 7; ++n)
    if (threadIdx.x + 32 * n < 203) y[threadIdx.x + 32 * n] = parts[n] / sum;
}
