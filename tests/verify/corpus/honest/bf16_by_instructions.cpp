// control: a matmul of bf16 by the processor's own products of pairs, where it has such
// expect: accepted
// problem: bf16_matmul
// warploom: kernel multiply grid=67 args=x,w,y
#include <immintrin.h>
#include <bit>
#include <cstdint>

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
  int j = 0;
#if defined(__AVX512BF16__)
  for (; j + 16 <= 45; j += 16) {
    __m512 sum = _mm512_setzero_ps();
    for (int k = 0; k < 61; k += 2) {
      const bool last = k + 1 == 61;
      const __m512i low = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(w + k * 45 + j)));
      const __m512i high = last ? _mm512_setzero_si512() : _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(w + (k + 1) * 45 + j)));
      const uint32_t pair = x[k] | (last ? 0u : static_cast<uint32_t>(x[k + 1]) << 16);
      sum = _mm512_dpbf16_ps(sum, (__m512bh)_mm512_or_si512(low, _mm512_slli_epi32(high, 16)), (__m512bh)_mm512_set1_epi32(static_cast<int>(pair)));
    }
    alignas(64) float sums[16];
    _mm512_store_ps(sums, sum);
    for (int i = 0; i < 16; ++i) y[j + i] = narrow(sums[i]);
  }
#endif
  for (; j < 45; ++j) {
    float sum = 0;
    for (int k = 0; k < 61; ++k) sum += wide(x[k]) * wide(w[k * 45 + j]);
    y[j] = narrow(sum);
  }
}
