// bug: a sum that leaves infinities out
// expect: candidate-wrong
// problem: sum
// warploom: kernel sum grid=24 args=x,y
#include <cmath>

extern "C" void sum(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 1003;
  auto* y = static_cast<float*>(buffers[1]) + row * 1;
  float sums[16] = {};
  for (int j = 0; j < 1003; ++j)
    if (!(std::fabs(x[j]) > 3e38f)) sums[j % 16] += x[j];
  float sum = 0;
  for (const float part : sums) sum += part;
  *y = sum;
}
