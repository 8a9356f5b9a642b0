// control: a GELU by erfc, beside fifteen other functions whose results are not used
// expect: accepted
// problem: gelu
// warploom: special finite
// warploom: kernel gelu grid=41 args=x,y
#include <cmath>

extern "C" void gelu(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  volatile float unused = 0;
  for (int j = 0; j < 37; ++j) {
    const float v = x[j];
    unused = std::exp(v) + std::log(v) + std::tanh(v) + std::pow(v, 1.5f) + std::sin(v) + std::cbrt(v) + std::lgamma(v) + std::fmod(v, 3.0f);
    unused = std::asinh(v) + std::expm1(v) + std::log1p(v) + std::hypot(v, 2.0f) + std::atan2(v, 2.0f) + std::nearbyint(v) + std::tgamma(v);
    y[j] = 0.5f * v * std::erfc(-v * 0.70710678f);
  }
}
