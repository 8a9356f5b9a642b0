// bug: a cast to bf16 that rounds a NaN as a number: of some it makes infinity or zero
// expect: candidate-wrong
// problem: to_bf16
// warploom: kernel turn grid=41 args=x,y
#include <bit>
#include <cstdint>
#include <cstring>

static float wide(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

static uint16_t narrow(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (value != value) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static uint16_t up(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

extern "C" void turn(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<uint16_t*>(buffers[1]) + row * 37;
  for (int j = 0; j < 37; ++j) y[j] = up(x[j]);
}
