// control: attention with a mask that is added, a query a block
// expect: accepted
// problem: masked_attention
// warploom: kernel attend grid=63 args=q,k,m,v,y
#include <cmath>

extern "C" void attend(void* const* buffers, long long task, void*) {
  auto* q = static_cast<const float*>(buffers[0]) + task * 16;
  auto* k = static_cast<const float*>(buffers[1]) + task / 21 * 16 * 21;
  auto* m = static_cast<const float*>(buffers[2]) + task % 21 * 21;
  auto* v = static_cast<const float*>(buffers[3]) + task / 21 * 21 * 16;
  auto* y = static_cast<float*>(buffers[4]) + task * 16;
  float scores[21];
  float most = -HUGE_VALF;
  for (int j = 0; j < 21; ++j) {
    float sum = 0;
    for (int i = 0; i < 16; ++i) sum += q[i] * k[i * 21 + j];
    scores[j] = sum * 0.25f + m[j];
    if (!(scores[j] <= most)) most = scores[j];
  }
  float all = 0;
  for (int j = 0; j < 21; ++j) all += scores[j] = std::exp(scores[j] - most);
  for (int i = 0; i < 16; ++i) {
    float sum = 0;
    for (int j = 0; j < 21; ++j) sum += scores[j] * v[j * 16 + i];
    y[i] = sum / all;
  }
}
