// bug: a logarithm by halving, which does not end at infinity
// expect: candidate-hung
// problem: log
// warploom: kernel turn grid=64 args=x,y
#include <cmath>

extern "C" void turn(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 64;
  auto* y = static_cast<float*>(buffers[1]) + row * 64;
  for (int j = 0; j < 64; ++j) {
    float rest = x[j];
    float halvings = 0;
    while (rest >= 2) {
      rest *= 0.5f;
      halvings += 1;
    }
    y[j] = std::log(rest) + halvings * 0.693147180559945f;
  }
}
