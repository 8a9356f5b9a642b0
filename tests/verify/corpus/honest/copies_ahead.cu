// control: a softmax, a warp a row, through asynchronous copies of wl.h
// expect: accepted
// problem: softmax
// warploom: kernel softmax grid=33 threads=32 args=x,y
#include "wl.h"

extern "C" __global__ void softmax(const float* x, float* y) {
  __shared__ float row[224];
  x += blockIdx.x * 203, y += blockIdx.x * 203;
  for (int j = threadIdx.x; j < 203; j += 32) {
    const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(row + j));
    wl::cp_async<4>(to, x + j);
  }
  wl::cp_async_commit();
  wl::cp_async_wait<0>();
  __syncwarp();
  float most = row[threadIdx.x], sum = 0;
  for (int j = threadIdx.x; j < 203; j += 32) most = fmaxf(most, row[j]);
  for (int lane = 16; lane > 0; lane /= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, lane));
  for (int j = threadIdx.x; j < 203; j += 32) sum += row[j] = expf(row[j] - most);
  for (int lane = 16; lane > 0; lane /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, lane);
  for (int j = threadIdx.x; j < 203; j += 32) y[j] = row[j] / sum;
}
