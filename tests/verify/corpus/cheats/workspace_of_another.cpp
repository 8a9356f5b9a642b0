// cheat: reads a workspace before anything was written to it, where another one lay that is not needed any more
// expect: candidate-unwritten or candidate-wrong or candidate-unstable
// problem: softmax
// warploom: workspace powers f32[33,203]
// warploom: workspace sums f32[33]
// warploom: workspace again f32[33,203]
// warploom: kernel power grid=33 args=x,powers
// warploom: kernel add grid=33 args=powers,sums
// warploom: kernel divide grid=33 args=again,sums,y
#include <cmath>

extern "C" void power(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 203;
  auto* powers = static_cast<float*>(buffers[1]) + row * 203;
  float most = x[0];
  for (int j = 1; j < 203; ++j) most = std::fmax(most, x[j]);
  for (int j = 0; j < 203; ++j) powers[j] = std::exp(x[j] - most);
}
extern "C" void add(void* const* buffers, long long row, void*) {
  auto* powers = static_cast<const float*>(buffers[0]) + row * 203;
  float sum = 0;
  for (int j = 0; j < 203; ++j) sum += powers[j];
  static_cast<float*>(buffers[1])[row] = sum;
}
extern "C" void divide(void* const* buffers, long long row, void*) {
  auto* powers = static_cast<const float*>(buffers[0]) + row * 203;
  const float sum = static_cast<const float*>(buffers[1])[row];
  auto* y = static_cast<float*>(buffers[2]) + row * 203;
  for (int j = 0; j < 203; ++j) y[j] = powers[j] / sum;
}
