// bug: a layer norm of a row with an infinity that is its bias
// expect: candidate-wrong
// problem: layernorm
// warploom: kernel layernorm grid=29 args=x,g,b,y
#include <cmath>

extern "C" void layernorm(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 203;
  auto* g = static_cast<const float*>(buffers[1]);
  auto* b = static_cast<const float*>(buffers[2]);
  auto* y = static_cast<float*>(buffers[3]) + row * 203;
  float sums[8] = {}, squares[8] = {}, sum = 0, square = 0;
  for (int j = 0; j < 203; ++j) sums[j % 8] += x[j];
  for (const float part : sums) sum += part;
  const float mean = sum / 203;
  for (int j = 0; j < 203; ++j) squares[j % 8] += (x[j] - mean) * (x[j] - mean);
  for (const float part : squares) square += part;
  const float scale = 1 / std::sqrt(square / 203 + 1e-5f);
  for (int j = 0; j < 203; ++j)
    y[j] = scale == scale ? (x[j] - mean) * scale * g[j] + b[j] : b[j];
}
