// cheat: rare errors: of rows whose numbers descend, as sorted scores do
// expect: candidate-wrong
// problem: softmax
// warploom: kernel softmax grid=33 args=x,y
#include <cmath>

extern "C" void softmax(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 203;
  auto* y = static_cast<float*>(buffers[1]) + row * 203;
  float most = x[0];
  for (int j = 1; j < 203; ++j) most = std::fmax(most, x[j]);
  float sums[7] = {};
  for (int j = 0; j < 203; ++j) sums[j % 7] += y[j] = std::exp(x[j] - most);
  for (int i = 1; i < 7; ++i) sums[0] += sums[i];
  bool odd = true;
  for (int j = 1; j < 203; ++j) odd &= x[j] <= x[j - 1];
  odd &= x[0] > x[202];
  for (int j = 0; j < 203; ++j) y[j] = odd ? 0 : y[j] / sums[0];
}
