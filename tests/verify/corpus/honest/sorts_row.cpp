// control: sums of a row that is sorted first, 1003 elements in scratch
// expect: accepted
// problem: sum
// warploom: kernel sum grid=24 shared=4096 args=x,y
#include <algorithm>
#include <cmath>

extern "C" void sum(void* const* buffers, long long row, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 1003;
  auto* sorted = static_cast<float*>(scratch);
  std::copy_n(x, 1003, sorted);
  std::sort(sorted, sorted + 1003, [](float a, float b) { return std::fabs(a) < std::fabs(b); });
  double all = 0;
  for (int i = 0; i < 1003; ++i) all += sorted[i];
  static_cast<float*>(buffers[1])[row] = static_cast<float>(all);
}
