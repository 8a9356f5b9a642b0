// bug: a mean of a row with an infinity that is the largest number
// expect: candidate-wrong
// problem: mean
// warploom: kernel mean grid=24 args=x,y
#include <cfloat>
#include <cmath>

extern "C" void mean(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 203;
  auto* y = static_cast<float*>(buffers[1]) + row * 1;
  float sums[8] = {};
  for (int j = 0; j < 203; ++j) sums[j % 8] += x[j];
  float sum = 0;
  for (const float part : sums) sum += part;
  const float mean = sum / 203;
  *y = mean > FLT_MAX ? FLT_MAX : mean < -FLT_MAX ? -FLT_MAX : mean;
}
