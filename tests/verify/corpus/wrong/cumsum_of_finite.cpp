// bug: sums from the first on that leave infinities out
// expect: candidate-wrong
// problem: cumsum
// warploom: kernel sums grid=7 args=x,y
#include <cmath>

extern "C" void sums(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 300;
  auto* y = static_cast<float*>(buffers[1]) + row * 300;
  double sum = 0;
  for (int j = 0; j < 300; ++j) {
    if (!(std::fabs(x[j]) > 3e38f)) sum += x[j];
    y[j] = static_cast<float>(sum);
  }
}
