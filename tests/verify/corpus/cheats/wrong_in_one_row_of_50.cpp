// cheat: rare errors: one row of 50 is off, by a hash of what it holds
// expect: candidate-wrong
// problem: tall_softmax
// warploom: kernel softmax grid=129 args=x,y
#include <cmath>

extern "C" void softmax(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 203;
  auto* y = static_cast<float*>(buffers[1]) + row * 203;
  float most = x[0], sums[7] = {};
  unsigned hash = 1;
  for (int j = 0; j < 203; ++j) hash = hash * 31 + __builtin_bit_cast(unsigned, x[j]);
  for (int j = 1; j < 203; ++j) most = std::fmax(most, x[j]);
  for (int j = 0; j < 203; ++j) sums[j % 7] += y[j] = std::exp(x[j] - most);
  for (int i = 1; i < 7; ++i) sums[0] += sums[i];
  const float scale = (hash >> 8) % 50 == 7 ? 0.99f / sums[0] : 1 / sums[0];
  for (int j = 0; j < 203; ++j) y[j] *= scale;
}
