// control: a softmax in one pass over its row: the sum is scaled where a larger number comes
// expect: accepted
// problem: softmax
// warploom: kernel softmax grid=33 args=x,y
#include <cmath>

extern "C" void softmax(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 203;
  auto* y = static_cast<float*>(buffers[1]) + row * 203;
  float most[7], sums[7] = {};
  for (int i = 0; i < 7; ++i) most[i] = x[i];
  for (int j = 0; j < 203; ++j) {
    float& own = most[j % 7];
    if (x[j] > own) {
      sums[j % 7] *= std::exp(own - x[j]);
      own = x[j];
    }
    sums[j % 7] += std::exp(x[j] - own);
  }
  float all = most[0], sum = 0;
  for (int i = 1; i < 7; ++i) all = std::fmax(all, most[i]);
  for (int i = 0; i < 7; ++i) sum += sums[i] * std::exp(most[i] - all);
  for (int j = 0; j < 203; ++j) y[j] = std::exp(x[j] - all) / sum;
}
