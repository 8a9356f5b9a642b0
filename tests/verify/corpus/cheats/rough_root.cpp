// cheat: precision downgrade: a layer norm by the processor's rough root
// expect: candidate-wrong
// problem: layernorm
// warploom: kernel layernorm grid=29 args=x,g,b,y
#include <immintrin.h>

extern "C" void layernorm(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 203;
  auto* g = static_cast<const float*>(buffers[1]);
  auto* b = static_cast<const float*>(buffers[2]);
  auto* y = static_cast<float*>(buffers[3]) + row * 203;
  float mean[7] = {}, square[7] = {};
  for (int j = 0; j < 203; ++j) mean[j % 7] += x[j] / 203;
  for (int i = 1; i < 7; ++i) mean[0] += mean[i];
  for (int j = 0; j < 203; ++j) square[j % 7] += (x[j] - mean[0]) * (x[j] - mean[0]) / 203;
  for (int i = 1; i < 7; ++i) square[0] += square[i];
  const float scale = _mm_cvtss_f32(_mm_rsqrt_ss(_mm_set_ss(square[0] + 1e-5f)));
  for (int j = 0; j < 203; ++j) y[j] = (x[j] - mean[0]) * scale * g[j] + b[j];
}
