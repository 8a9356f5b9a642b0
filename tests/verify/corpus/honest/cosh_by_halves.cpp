// control: half of the exponential's root times the other half
// expect: accepted
// problem: cosh
// warploom: kernel hyperbola grid=9 args=x,y
#include <cmath>
extern "C" void hyperbola(void* const* buffers, long long block, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + block * 512;
  auto* y = static_cast<float*>(buffers[1]) + block * 512;
  for (int i = 0; i < 512; ++i) {
    const float root = std::exp(0.5f * std::fabs(x[i]));
    y[i] = 0.5f * root * root + 0.5f * std::exp(-std::fabs(x[i]));
  }
}
