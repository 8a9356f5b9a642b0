// control: a ReLU of bf16 on its bits
// expect: accepted
// problem: bf16_relu
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

extern "C" void turn(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const uint16_t*>(buffers[0]) + row * 37;
  auto* y = static_cast<uint16_t*>(buffers[1]) + row * 37;
  for (int j = 0; j < 37; ++j) y[j] = (x[j] & 0x8000) != 0 && (x[j] & 0x7fff) <= 0x7f80 ? 0 : x[j];
}
