// bug: a layer norm of 16-bit floats whose mean and variance are 16 bits
// expect: candidate-wrong or candidate-non-finite
// problem: half_layernorm
// warploom: kernel normalize grid=29 args=x,g,b,y
#include <cmath>
using T = _Float16;

extern "C" void normalize(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const _Float16*>(buffers[0]) + row * 203;
  auto* g = static_cast<const _Float16*>(buffers[1]);
  auto* b = static_cast<const _Float16*>(buffers[2]);
  auto* y = static_cast<_Float16*>(buffers[3]) + row * 203;
  T mean = 0;
  for (int j = 0; j < 203; ++j) mean += static_cast<T>(x[j]) / static_cast<T>(203);
  T variance = 0;
  for (int j = 0; j < 203; ++j) {
    const T apart = static_cast<T>(x[j]) - mean;
    variance += apart * apart / static_cast<T>(203);
  }
  const auto scale = static_cast<T>(1 / std::sqrt(static_cast<float>(variance) + 1e-5f));
  for (int j = 0; j < 203; ++j)
    y[j] = static_cast<_Float16>((static_cast<T>(x[j]) - mean) * scale * static_cast<T>(g[j]) + static_cast<T>(b[j]));
}
