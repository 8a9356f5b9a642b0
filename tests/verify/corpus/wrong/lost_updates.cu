// bug: a race: blocks add to the same sums without an atomic operation
// expect: candidate-wrong
// problem: long_sum
// warploom: kernel sum grid=235 threads=256 args=x,y zeroed=y
extern "C" __global__ void sum(const float* x, volatile float* y) {
  const int column = blockIdx.x * 256 + threadIdx.x;
  for (int row = 0; row < 8 && column < 60011; ++row) y[row] = y[row] + x[row * 60011 + column];
}
