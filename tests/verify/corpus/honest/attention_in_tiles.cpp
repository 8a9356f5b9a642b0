// control: attention by tiles of keys: sums are scaled where a larger score comes
// expect: accepted
// problem: masked_attention
// warploom: kernel attend grid=63 args=q,k,m,v,y
#include <cmath>

extern "C" void attend(void* const* buffers, long long task, void*) {
  auto* q = static_cast<const float*>(buffers[0]) + task * 16;
  auto* k = static_cast<const float*>(buffers[1]) + task / 21 * 336;
  auto* m = static_cast<const float*>(buffers[2]) + task % 21 * 21;
  auto* v = static_cast<const float*>(buffers[3]) + task / 21 * 336;
  auto* y = static_cast<float*>(buffers[4]) + task * 16;
  float sums[16] = {}, all = 0, most = -HUGE_VALF;
  for (int tile = 0; tile < 21; tile += 7) {
    float scores[7], larger = most;
    for (int j = 0; j < 7; ++j) {
      float sum = 0;
      for (int i = 0; i < 16; ++i) sum += q[i] * k[i * 21 + tile + j];
      scores[j] = sum * 0.25f + m[tile + j];
      if (!(scores[j] <= larger)) larger = scores[j];
    }
    const float shrunk = most == larger ? 1 : std::exp(most - larger);
    all *= shrunk;
    for (float& one : sums) one *= shrunk;
    most = larger;
    for (int j = 0; j < 7; ++j) {
      const float power = std::exp(scores[j] - most);
      all += power;
      for (int i = 0; i < 16; ++i) sums[i] += power * v[(tile + j) * 16 + i];
    }
  }
  for (int i = 0; i < 16; ++i) y[i] = sums[i] / all;
}
