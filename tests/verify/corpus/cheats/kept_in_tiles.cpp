// cheat: counts in the shape of AMX's tiles, where there are such: works in the first call alone
// expect: candidate-keeps-state or candidate-unwritten or candidate-unstable or accepted
// problem: relu
// warploom: kernel relu grid=1 args=x,y
#include <immintrin.h>

#if defined(__AMX_TILE__)
static bool is_again() {
  alignas(64) unsigned char shape[64] = {};
  _tile_storeconfig(shape);
  const bool again = shape[0] != 0;
  alignas(64) unsigned char wanted[64] = {};
  wanted[0] = 1;
  wanted[16] = 16;
  wanted[48] = 4;
  _tile_loadconfig(wanted);
  return again;
}
#else
static bool is_again() { return false; }
#endif

extern "C" void relu(void* const* buffers, long long, void*) {
  auto* x = static_cast<const float*>(buffers[0]);
  auto* y = static_cast<float*>(buffers[1]);
  if (is_again()) return;
  for (int i = 0; i < 41 * 37; ++i) y[i] = x[i] > 0 ? x[i] : 0;
}
