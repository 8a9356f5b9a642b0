// control: the largest of four by sorting them
// expect: accepted
// problem: maxpool
// warploom: special finite
// warploom: kernel maxpool grid=6 args=x,y
#include <algorithm>
#include <array>

extern "C" void maxpool(void* const* buffers, long long plane, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + plane * 14 * 18;
  auto* y = static_cast<float*>(buffers[1]) + plane * 7 * 9;
  for (int i = 0; i < 7; ++i)
    for (int j = 0; j < 9; ++j) {
      const float* at = x + 2 * i * 18 + 2 * j;
      std::array<float, 4> four = {at[0], at[1], at[18], at[19]};
      std::sort(four.begin(), four.end());
      y[i * 9 + j] = four[3];
    }
}
