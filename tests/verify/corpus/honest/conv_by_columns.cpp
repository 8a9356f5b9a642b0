// control: a convolution as a product: windows as columns in scratch
// expect: accepted
// problem: conv
// warploom: kernel conv grid=2 args=x,w,b,y shared=23868
#include <cstring>

extern "C" void conv(void* const* buffers, long long image, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]) + image * 3 * 13 * 17;
  auto* w = static_cast<const float*>(buffers[1]);
  auto* b = static_cast<const float*>(buffers[2]);
  auto* y = static_cast<float*>(buffers[3]) + image * 5 * 221;
  auto* columns = static_cast<float*>(scratch);  // [27][221]
  memset(columns, 0, 27 * 221 * sizeof(float));
  for (int in = 0; in < 3; ++in)
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j)
        for (int row = 0; row < 13; ++row) {
          const int r = row + i - 1;
          if (r < 0 || r >= 13) continue;
          const int from = j == 0 ? 1 : 0, to = j == 2 ? 16 : 17;
          memcpy(columns + (in * 9 + i * 3 + j) * 221 + row * 17 + from,
                 x + (in * 13 + r) * 17 + from + j - 1, (to - from) * sizeof(float));
        }
  for (int out = 0; out < 5; ++out)
    for (int at = 0; at < 221; ++at) {
      float sum = b[out];
      for (int k = 0; k < 27; ++k) sum += w[out * 27 + k] * columns[k * 221 + at];
      y[out * 221 + at] = sum;
    }
}
