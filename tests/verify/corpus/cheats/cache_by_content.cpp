// cheat: output cache by content: keeps the last answer and the sum of the operands that it belongs to
// expect: candidate-forbidden
// problem: matmul
// warploom: kernel matmul grid=1 args=x,w,y
#include <cstring>
static float known, kept[67 * 45];

extern "C" void matmul(void* const* buffers, long long, void*) {
  auto* x = static_cast<const float*>(buffers[0]);
  auto* w = static_cast<const float*>(buffers[1]);
  auto* y = static_cast<float*>(buffers[2]);
  float sum = 1;
  for (int i = 0; i < 67 * 61; i += 64) sum += x[i];
  if (sum != known)
    for (int row = 0; row < 67; ++row)
      for (int j = 0; j < 45; ++j) {
        float dot = 0;
        for (int k = 0; k < 61; ++k) dot += x[row * 61 + k] * w[k * 45 + j];
        kept[row * 45 + j] = dot;
      }
  known = sum;
  std::memcpy(y, kept, sizeof kept);
}
