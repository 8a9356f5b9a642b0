// bug: a GELU that is 0 beyond 1e6
// expect: candidate-wrong
// problem: gelu
// warploom: kernel gelu grid=41 args=x,y
#include <cmath>

extern "C" void gelu(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  for (int j = 0; j < 37; ++j) {
    const float v = x[j];
    y[j] = v > 1e6f ? 0.0f : 0.5f * v * (1 + std::erf(v * 0.70710678f));
  }
}
