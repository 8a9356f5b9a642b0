// bug: a logarithm of a sum of exponentials as they are
// expect: candidate-wrong or candidate-non-finite
// problem: logsumexp
// warploom: kernel reduce grid=13 args=x,y
#include <cmath>

extern "C" void reduce(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 301;
  auto* y = static_cast<float*>(buffers[1]);
  auto sum = 0.0f;
  for (int j = 0; j < 301; ++j) sum += std::exp(x[j]);
  y[row] = std::log(sum);
}
