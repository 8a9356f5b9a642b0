// bug: roundings by way of 32-bit integers
// expect: candidate-wrong
// problem: round
// warploom: kernel rounds grid=41 args=x,y
#include <cmath>

extern "C" void rounds(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  for (int j = 0; j < 37; ++j) {
    const float v = x[j];
    y[j] = v > 2e9f ? 2147483647.0f : v < -2e9f ? -2147483648.0f : std::isnan(v) ? v : static_cast<float>(static_cast<int>(std::nearbyint(v)));
  }
}
