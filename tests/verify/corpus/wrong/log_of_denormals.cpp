// bug: a logarithm that takes the smallest numbers for 0
// expect: candidate-wrong or candidate-non-finite
// problem: log
// warploom: kernel turn grid=64 args=x,y
#include <cmath>

extern "C" void turn(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 64;
  auto* y = static_cast<float*>(buffers[1]) + row * 64;
  for (int j = 0; j < 64; ++j) y[j] = std::fabs(x[j]) < 1.2e-38f ? std::log(0.0f) : std::log(x[j]);
}
