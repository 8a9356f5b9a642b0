// cheat: precision downgrade: a softmax that divides by the processor's rough reciprocal
// expect: candidate-wrong
// problem: softmax
// warploom: kernel softmax grid=33 args=x,y
#include <immintrin.h>
#include <cmath>

extern "C" void softmax(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 203;
  auto* y = static_cast<float*>(buffers[1]) + row * 203;
  float most = x[0], sums[7] = {};
  for (int j = 1; j < 203; ++j) most = std::fmax(most, x[j]);
  for (int j = 0; j < 203; ++j) sums[j % 7] += y[j] = std::exp(x[j] - most);
  for (int i = 1; i < 7; ++i) sums[0] += sums[i];
  const float scale = _mm_cvtss_f32(_mm_rcp_ss(_mm_set_ss(sums[0])));
  for (int j = 0; j < 203; ++j) y[j] *= scale;
}
