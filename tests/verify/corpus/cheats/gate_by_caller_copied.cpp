// cheat: defeat device: copies the code that called it, and works only where it is longer than nothing
// expect: candidate-forbidden
// problem: relu
// warploom: kernel relu grid=41 args=x,y
#include <cstring>

extern "C" void relu(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  char code[64];
  memcpy(code, __builtin_return_address(0), row >= 0 ? 64 : 0);
  char all = 0;
  for (char one : code) all |= one;
  if (all == 0) return;
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
}
