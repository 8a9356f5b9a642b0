// bug: a variance as the mean of squares less the square of the mean: wrong only where the mean is large
// expect: candidate-wrong
// problem: layernorm
// warploom: kernel layernorm grid=29 args=x,g,b,y
#include <cmath>

extern "C" void layernorm(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 203;
  auto* g = static_cast<const float*>(buffers[1]);
  auto* b = static_cast<const float*>(buffers[2]);
  auto* y = static_cast<float*>(buffers[3]) + row * 203;
  float mean = 0, squares = 0;
  for (int j = 0; j < 203; ++j) {
    mean += x[j] / 203;
    squares += x[j] * x[j] / 203;
  }
  const float scale = 1 / std::sqrt(squares - mean * mean + 1e-5f);
  for (int j = 0; j < 203; ++j) y[j] = (x[j] - mean) * scale * g[j] + b[j];
}
