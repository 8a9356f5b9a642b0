// control: a softmax in three kernels, workspaces between them
// expect: accepted
// problem: softmax
// warploom: workspace most f32[33]
// warploom: workspace sums f32[33]
// warploom: kernel most_of grid=33 args=x,most
// warploom: kernel sum_of grid=33 args=x,most,sums
// warploom: kernel divide grid=3 args=x,most,sums,y
#include <cmath>

extern "C" void most_of(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 203;
  float most = x[0];
  for (int j = 1; j < 203; ++j) most = std::fmax(most, x[j]);
  static_cast<float*>(buffers[1])[row] = most;
}
extern "C" void sum_of(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 203;
  float sums[7] = {};
  for (int j = 0; j < 203; ++j) sums[j % 7] += std::exp(x[j] - static_cast<const float*>(buffers[1])[row]);
  for (int i = 1; i < 7; ++i) sums[0] += sums[i];
  static_cast<float*>(buffers[2])[row] = sums[0];
}
extern "C" void divide(void* const* buffers, long long part, void*) {
  auto* x = static_cast<const float*>(buffers[0]);
  auto* y = static_cast<float*>(buffers[3]);
  for (long long row = part * 11; row < part * 11 + 11; ++row)
    for (int j = 0; j < 203; ++j)
      y[row * 203 + j] = std::exp(x[row * 203 + j] - static_cast<const float*>(buffers[1])[row]) / static_cast<const float*>(buffers[2])[row];
}
