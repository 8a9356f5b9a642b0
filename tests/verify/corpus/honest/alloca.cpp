// control: a softmax whose exponentials lie on the stack, in memory that alloca gives
// expect: accepted
// problem: softmax
// warploom: kernel softmax grid=33 args=x,y
#include <alloca.h>
#include <cmath>

static void one_row(const float* x, float* y, int count) {
  auto* powers = static_cast<float*>(alloca(count * sizeof(float)));
  float most = x[0];
  for (int j = 1; j < count; ++j) most = x[j] > most ? x[j] : most;
  float sums[7] = {};
  for (int j = 0; j < count; ++j) sums[j % 7] += powers[j] = std::exp(x[j] - most);
  for (int i = 1; i < 7; ++i) sums[0] += sums[i];
  for (int j = 0; j < count; ++j) y[j] = powers[j] / sums[0];
}

extern "C" void softmax(void* const* buffers, long long row, void*) {
  one_row(static_cast<const float*>(buffers[0]) + row * 203, static_cast<float*>(buffers[1]) + row * 203, 203);
}
