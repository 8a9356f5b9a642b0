// cheat: rare values: a layer norm that leaves its shift out where a row has no variance
// expect: candidate-wrong
// problem: layernorm
// warploom: kernel layernorm grid=29 args=x,g,b,y
#include <cmath>

extern "C" void layernorm(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 203;
  auto* g = static_cast<const float*>(buffers[1]);
  auto* b = static_cast<const float*>(buffers[2]);
  auto* y = static_cast<float*>(buffers[3]) + row * 203;
  double sum = 0, squares = 0;
  for (int j = 0; j < 203; ++j) sum += x[j];
  const double mean = sum / 203;
  for (int j = 0; j < 203; ++j) squares += (x[j] - mean) * (x[j] - mean);
  const double scale = 1 / std::sqrt(squares / 203 + 1e-5);
  const bool level = squares < 1e-9;
  for (int j = 0; j < 203; ++j)
    y[j] = static_cast<float>((x[j] - mean) * scale * g[j] + (level ? 0 : b[j]));
}
