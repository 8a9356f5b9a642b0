// bug: atomic additions of floats: the order of the sums, and so their last bits, change from run to run
// expect: candidate-unstable
// problem: long_sum
// warploom: kernel sum grid=235 threads=256 args=x,y zeroed=y
extern "C" __global__ void sum(const float* x, float* y) {
  const int column = blockIdx.x * 256 + threadIdx.x;
  for (int row = 0; row < 8; ++row) {
    float v = column < 60011 ? x[row * 60011 + column] : 0;
    for (int lane = 16; lane > 0; lane /= 2) v += __shfl_xor_sync(0xffffffffu, v, lane);
    if (threadIdx.x % 32 == 0) atomicAdd(y + row, v);
  }
}
