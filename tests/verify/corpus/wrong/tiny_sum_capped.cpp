// bug: sums of five numbers, each of at most 100
// expect: candidate-wrong
// problem: tiny
// warploom: kernel sum grid=2 args=x,y
#include <cmath>

extern "C" void sum(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 5;
  auto* y = static_cast<float*>(buffers[1]) + row * 1;
  float sum = 0;
  for (int j = 0; j < 5; ++j) sum += std::fabs(x[j]) > 100 && std::fabs(x[j]) < 1e5f ? 100 : x[j];
  *y = sum;
}
