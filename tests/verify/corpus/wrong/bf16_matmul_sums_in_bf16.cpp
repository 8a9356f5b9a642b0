// bug: a product of bf16 whose sums are bf16 as well
// expect: candidate-wrong
// problem: bf16_matmul
// warploom: kernel multiply grid=67 args=x,w,y
#include <bit>
#include <cstdint>
#include <cstring>

static float wide(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

static uint16_t narrow(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (value != value) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

extern "C" void multiply(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const uint16_t*>(buffers[0]) + row * 61;
  auto* w = static_cast<const uint16_t*>(buffers[1]);
  auto* y = static_cast<uint16_t*>(buffers[2]) + row * 45;
  for (int j = 0; j < 45; ++j) {
    float sum = 0;
    for (int k = 0; k < 61; ++k) sum = wide(narrow(sum + wide(x[k]) * wide(w[k * 45 + j])));
    y[j] = narrow(sum);
  }
}
