// bug: a maximum of at most the largest number
// expect: candidate-wrong
// problem: max_rows
// warploom: kernel most grid=37 args=x,y
#include <cfloat>
#include <cmath>

extern "C" void most(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 101;
  auto* y = static_cast<float*>(buffers[1]) + row * 1;
  float most = -FLT_MAX;
  for (int j = 0; j < 101; ++j) most = std::fmax(most, x[j]);
  *y = std::fmin(most, FLT_MAX);
}
