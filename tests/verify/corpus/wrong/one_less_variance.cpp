// bug: a layer norm that divides its squares by n - 1
// expect: candidate-wrong
// problem: layernorm
// warploom: kernel layernorm grid=29 args=x,g,b,y
#include <cmath>

extern "C" void layernorm(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 203;
  auto* g = static_cast<const float*>(buffers[1]);
  auto* b = static_cast<const float*>(buffers[2]);
  auto* y = static_cast<float*>(buffers[3]) + row * 203;
  // Eight running means and sums of squares, each of every eighth element, put together by twos.
  float means[8] = {}, parts[8] = {}, counts[8] = {};
  for (int j = 0; j < 203; ++j) {
    const int i = j % 8;
    const float difference = x[j] - means[i];
    means[i] += difference / ++counts[i];
    parts[i] += difference * (x[j] - means[i]);
  }
  for (int step = 4; step > 0; step /= 2)
    for (int i = 0; i < step; ++i) {
      const float count = counts[i] + counts[i + step], difference = means[i + step] - means[i];
      means[i] += difference * counts[i + step] / count;
      parts[i] += parts[i + step] + difference * difference * counts[i] * counts[i + step] / count;
      counts[i] = count;
    }
  const float mean = means[0], squares = parts[0];
  const float scale = 1 / std::sqrt(squares / 202 + 1e-5f);
  for (int j = 0; j < 203; ++j) y[j] = (x[j] - mean) * scale * g[j] + b[j];
}
