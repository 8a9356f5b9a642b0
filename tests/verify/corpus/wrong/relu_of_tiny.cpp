// bug: a ReLU that is 0 below 1e-20
// expect: candidate-wrong
// problem: relu
// warploom: kernel relu grid=41 args=x,y
#include <cmath>

extern "C" void relu(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  for (int j = 0; j < 37; ++j) {
    const float v = x[j];
    y[j] = v > 1e-20f ? v : v == v ? 0.0f : v;
  }
}
