// bug: a logarithm of 0 that is its least number, where minus infinity is right
// expect: candidate-wrong
// problem: log
// warploom: kernel logs grid=64 args=x,y
#include <cmath>

extern "C" void logs(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 64;
  auto* y = static_cast<float*>(buffers[1]) + row * 64;
  for (int j = 0; j < 64; ++j) {
    const float v = x[j];
    y[j] = v == 0 ? -3.4e38f : std::log(v);
  }
}
