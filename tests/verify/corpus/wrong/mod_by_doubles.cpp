// bug: remainders by floats: right of small numbers
// expect: candidate-wrong
// problem: mod_whole
// warploom: kernel turn grid=41 args=x,t,y
#include <cmath>

extern "C" void turn(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const int*>(buffers[0]) + row * 37;
  auto* t = static_cast<const int*>(buffers[1]) + row * 37;
  auto* y = static_cast<int*>(buffers[2]) + row * 37;
  for (int j = 0; j < 37; ++j) y[j] = static_cast<int>(x[j] - std::floor(static_cast<float>(x[j]) / static_cast<float>(t[j])) * static_cast<float>(t[j]));
}
