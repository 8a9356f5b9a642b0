// bug: a warp's sum that begins its shuffles at 8: the upper half of the lanes is left out
// expect: candidate-wrong
// problem: sum
// warploom: kernel sum grid=24 threads=32 args=x,y
extern "C" __global__ void sum(const float* x, float* y) {
  float v = 0;
  for (int j = threadIdx.x; j < 1003; j += 32) v += x[blockIdx.x * 1003 + j];
  for (int lane = 8; lane > 0; lane /= 2) v += __shfl_xor_sync(0xffffffffu, v, lane);
  if (threadIdx.x == 0) y[blockIdx.x] = v;
}
