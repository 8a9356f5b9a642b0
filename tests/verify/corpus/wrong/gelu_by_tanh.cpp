// bug: a GELU by its tanh formula where erf is asked for: off in the fourth digit
// expect: candidate-wrong
// problem: gelu
// warploom: kernel gelu grid=41 args=x,y
#include <cmath>

extern "C" void gelu(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  for (int j = 0; j < 37; ++j) y[j] = 0.5f * x[j] * (1 + std::tanh(0.79788456f * (x[j] + 0.044715f * x[j] * x[j] * x[j])));
}
