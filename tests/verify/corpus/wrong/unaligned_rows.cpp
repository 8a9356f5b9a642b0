// bug: loads of eight floats from addresses rounded down to 32 bytes: right only for rows of a multiple of eight
// expect: candidate-wrong
// problem: matmul
// warploom: kernel matmul grid=67 args=x,w,y
#include <cstdint>
using Eight = float __attribute__((vector_size(32)));

extern "C" void matmul(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]);
  auto* w = static_cast<const float*>(buffers[1]);
  auto* y = static_cast<float*>(buffers[2]);
  for (int j = 0; j < 45; ++j) {
    float sum = 0;
    for (int k = 0; k < 61; ++k) {
      const auto at = reinterpret_cast<std::uintptr_t>(w + k * 45 + j);
      sum += x[row * 61 + k] * (*reinterpret_cast<const Eight*>(at & ~std::uintptr_t{31}))[j % 8];
    }
    y[row * 45 + j] = sum;
  }
}
