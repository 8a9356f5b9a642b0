// control: a softmax of bf16, sums in 32 bits
// expect: accepted
// problem: bf16_softmax
// warploom: kernel softmax grid=33 args=x,y
#include <cmath>
#include <bit>
#include <cstdint>
#include <cstring>

static float wide(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

static uint16_t narrow(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (value != value) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

extern "C" void softmax(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const uint16_t*>(buffers[0]) + row * 203;
  auto* y = static_cast<uint16_t*>(buffers[1]) + row * 203;
  float values[203];
  float most = wide(x[0]);
  for (int j = 0; j < 203; ++j) most = wide(x[j]) > most ? wide(x[j]) : most;
  float sum = 0;
  for (int j = 0; j < 203; ++j) {
    values[j] = std::exp(wide(x[j]) - most);
    sum += values[j];
  }
  for (int j = 0; j < 203; ++j) y[j] = narrow(values[j] / sum);
}
