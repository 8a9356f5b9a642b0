// bug: a softmax that takes NaN for minus infinity
// expect: candidate-wrong
// problem: softmax
// warploom: kernel softmax grid=33 args=x,y
#include <cmath>

extern "C" void softmax(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 203;
  auto* y = static_cast<float*>(buffers[1]) + row * 203;
  float powers[203], sums[8] = {}, most = -1e30f;
  for (int j = 0; j < 203; ++j) most = x[j] > most ? x[j] : most;
  for (int j = 0; j < 203; ++j) sums[j % 8] += powers[j] = x[j] == x[j] ? std::exp(x[j] - most) : 0;
  const float sum = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
  for (int j = 0; j < 203; ++j) y[j] = powers[j] / sum;
}
