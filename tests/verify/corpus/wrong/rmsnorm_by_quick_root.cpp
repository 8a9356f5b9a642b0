// bug: a norm by the quick reciprocal root of twelve bits
// expect: candidate-wrong
// problem: rmsnorm
// warploom: kernel normalize grid=29 args=x,g,y
#include <immintrin.h>

extern "C" void normalize(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 203;
  auto* g = static_cast<const float*>(buffers[1]);
  auto* y = static_cast<float*>(buffers[2]) + row * 203;
  float sums[7] = {};
  for (int j = 0; j < 203; ++j) sums[j % 7] += x[j] * x[j];
  for (int i = 1; i < 7; ++i) sums[0] += sums[i];
  const float scale = _mm_cvtss_f32(_mm_rsqrt_ss(_mm_set_ss(sums[0] / 203 + 1e-5f)));
  for (int j = 0; j < 203; ++j) y[j] = x[j] * scale * g[j];
}
