// control: a matmul of bf16 by tiles of AMX, where the processor has such, which it gives back
// expect: accepted
// problem: bf16_matmul
// warploom: kernel multiply grid=5 args=x,w,y shared=16384
#include <immintrin.h>
#include <bit>
#include <cstdint>
#include <cstring>

static float wide(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

static uint16_t narrow(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (value != value) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

extern "C" void multiply(void* const* buffers, long long task, void* scratch) {
  auto* x = static_cast<const uint16_t*>(buffers[0]);
  auto* w = static_cast<const uint16_t*>(buffers[1]);
  auto* y = static_cast<uint16_t*>(buffers[2]);
  const int first = static_cast<int>(task) * 16, rows = first + 16 <= 67 ? 16 : 67 - first;
#if defined(__AMX_BF16__)
  auto* a = static_cast<uint16_t*>(scratch);  // [2][16][32]
  auto* b = a + 1024;                         // [2][16][2 * 16]
  auto* sums = reinterpret_cast<float*>(b + 1024);
  alignas(64) unsigned char shape[64] = {1};
  for (int tile = 0; tile < 3; ++tile) {
    shape[16 + 2 * tile] = 64;
    shape[48 + tile] = 16;
  }
  _tile_loadconfig(shape);
  std::memset(a, 0, 2048);
  for (int i = 0; i < rows; ++i)
    for (int k = 0; k < 61; ++k) a[k / 32 * 512 + i * 32 + k % 32] = x[(first + i) * 61 + k];
  for (int column = 0; column < 45; column += 16) {
    std::memset(b, 0, 2048);
    for (int k = 0; k < 61; ++k)
      for (int j = 0; j < 16 && column + j < 45; ++j)
        b[k / 32 * 512 + k % 32 / 2 * 32 + j * 2 + k % 2] = w[k * 45 + column + j];
    _tile_zero(0);
    for (int half = 0; half < 2; ++half) {
      _tile_loadd(1, a + half * 512, 64);
      _tile_loadd(2, b + half * 512, 64);
      _tile_dpbf16ps(0, 1, 2);
    }
    _tile_stored(0, sums, 64);
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < 16 && column + j < 45; ++j) y[(first + i) * 45 + column + j] = narrow(sums[i * 16 + j]);
  }
  _tile_release();
#else
  (void)scratch;
  for (int i = first; i < first + rows; ++i)
    for (int j = 0; j < 45; ++j) {
      float sum = 0;
      for (int k = 0; k < 61; ++k) sum += wide(x[i * 61 + k]) * wide(w[k * 45 + j]);
      y[i * 45 + j] = narrow(sum);
    }
#endif
}
