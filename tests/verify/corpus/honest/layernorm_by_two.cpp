// control: a layer norm by two kernels: means and scales in a workspace, then the rest
// expect: accepted
// problem: layernorm
// warploom: workspace facts f32[29,2]
// warploom: kernel measure grid=29 args=x,facts
// warploom: kernel apply grid=29 args=x,g,b,facts,y
#include <cmath>

extern "C" void measure(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 203;
  auto* facts = static_cast<float*>(buffers[1]) + row * 2;
  double sum = 0, squares = 0;
  for (int j = 0; j < 203; ++j) sum += x[j];
  const double mean = sum / 203;
  for (int j = 0; j < 203; ++j) squares += (x[j] - mean) * (x[j] - mean);
  facts[0] = static_cast<float>(mean);
  facts[1] = static_cast<float>(1 / std::sqrt(squares / 203 + 1e-5));
}
extern "C" void apply(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 203;
  auto* g = static_cast<const float*>(buffers[1]);
  auto* b = static_cast<const float*>(buffers[2]);
  auto* facts = static_cast<const float*>(buffers[3]) + row * 2;
  auto* y = static_cast<float*>(buffers[4]) + row * 203;
  for (int j = 0; j < 203; ++j) y[j] = (x[j] - facts[0]) * facts[1] * g[j] + b[j];
}
