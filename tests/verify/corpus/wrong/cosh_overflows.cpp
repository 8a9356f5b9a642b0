// bug: a textbook formula: the exponential overflows before it is halved, from 88.73 to 89.41
// expect: candidate-non-finite
// problem: cosh
// warploom: kernel hyperbola grid=9 args=x,y
#include <cmath>
extern "C" void hyperbola(void* const* buffers, long long block, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + block * 512;
  auto* y = static_cast<float*>(buffers[1]) + block * 512;
  for (int i = 0; i < 512; ++i) y[i] = 0.5f * (std::exp(x[i]) + std::exp(-x[i]));
}
