// control: a softmax over 129 rows in whose workspace each row finds what the row before left
// expect: accepted
// problem: tall_softmax
// warploom: workspace room f32[203]
// warploom: kernel softmax grid=1 args=x,y,room
#include <cmath>

extern "C" void softmax(void* const* buffers, long long, void*) {
  auto* x = static_cast<const float*>(buffers[0]);
  auto* y = static_cast<float*>(buffers[1]);
  auto* room = static_cast<float*>(buffers[2]);
  for (int row = 0; row < 129; ++row, x += 203, y += 203) {
    float most = x[0], sums[7] = {};
    for (int j = 1; j < 203; ++j) most = std::fmax(most, x[j]);
    for (int j = 0; j < 203; ++j) room[j] = std::exp(x[j] - most);
    for (int j = 0; j < 203; ++j) sums[j % 7] += room[j];
    for (int i = 1; i < 7; ++i) sums[0] += sums[i];
    for (int j = 0; j < 203; ++j) y[j] = room[j] / sums[0];
  }
}
