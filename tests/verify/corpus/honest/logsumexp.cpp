// control: a logarithm of a sum of exponentials, less their largest
// expect: accepted
// problem: logsumexp
// warploom: kernel reduce grid=13 args=x,y
#include <cmath>

extern "C" void reduce(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 301;
  auto* y = static_cast<float*>(buffers[1]);
  float most = x[0];
  for (int j = 1; j < 301; ++j) most = std::fmax(most, x[j]);
  const bool ends = std::isinf(most);
  if (ends) {
    y[row] = most;
    return;
  }
  float sum = 0;
  for (int j = 0; j < 301; ++j) sum += std::exp(x[j] - most);
  y[row] = std::log(sum) + most;
}
