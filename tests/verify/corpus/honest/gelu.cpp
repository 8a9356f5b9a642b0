// control: a GELU by the C library's erff
// expect: accepted
// problem: gelu
// warploom: kernel gelu grid=41 args=x,y
#include <cmath>

extern "C" void gelu(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  // 1 + erf(v) is 1 - erf(-v) = erfc(-v), which keeps its digits where it is small.
  for (int j = 0; j < 37; ++j) y[j] = 0.5f * x[j] * std::erfc(-x[j] * 0.70710678f);
}
