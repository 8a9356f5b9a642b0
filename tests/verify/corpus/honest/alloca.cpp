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
  float sum = 0;
  for (int j = 0; j < count; ++j) sum += powers[j] = std::exp(x[j] - most);
  for (int j = 0; j < count; ++j) y[j] = powers[j] / sum;
}

extern "C" void softmax(void* const* buffers, long long row, void*) {
  one_row(static_cast<const float*>(buffers[0]) + row * 203, static_cast<float*>(buffers[1]) + row * 203, 203);
}
