// bug: a softmax that does not take its maximum off: wrong only on outliers, whose exponentials are infinite
// expect: candidate-non-finite
// problem: tall_softmax
// warploom: kernel softmax grid=129 args=x,y
#include <cmath>

extern "C" void softmax(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 203;
  auto* y = static_cast<float*>(buffers[1]) + row * 203;
  float sums[8] = {};
  for (int j = 0; j < 203; ++j) sums[j % 8] += y[j] = std::exp(x[j]);
  const float sum = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
  for (int j = 0; j < 203; ++j) y[j] /= sum;
}
