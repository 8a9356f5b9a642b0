// control: attention, a row a block
// expect: accepted
// problem: attention
// warploom: kernel attention grid=9 args=q,k,v,y
#include <cmath>

extern "C" void attention(void* const* buffers, long long row, void*) {
  auto* q = static_cast<const float*>(buffers[0]) + row * 16;
  auto* k = static_cast<const float*>(buffers[1]);
  auto* v = static_cast<const float*>(buffers[2]);
  auto* y = static_cast<float*>(buffers[3]) + row * 8;
  float scores[21] = {}, most = -HUGE_VALF, sum = 0;
  for (int j = 0; j < 21; ++j) {
    for (int d = 0; d < 16; ++d) scores[j] += q[d] * k[d * 21 + j];
    most = scores[j] > most ? scores[j] : most;
  }
  for (float& score : scores) sum += score = std::exp(score - most);
  for (int c = 0; c < 8; ++c) {
    float part = 0;
    for (int j = 0; j < 21; ++j) part += scores[j] * v[j * 8 + c];
    y[c] = part / sum;
  }
}
