// control: a ReLU whose tails are masked vectors, where the processor has such
// expect: accepted
// problem: relu
// warploom: kernel relu grid=41 args=x,y
#include <immintrin.h>

extern "C" void relu(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
#if defined(__AVX512F__)
  for (int j = 0; j < 48; j += 16) {
    const int left = 37 - j;
    const auto mask = static_cast<__mmask16>(left >= 16 ? 0xffff : (1 << left) - 1);
    const __m512 v = _mm512_maskz_loadu_ps(mask, x + j);
    _mm512_mask_storeu_ps(y + j, mask, _mm512_max_ps(v, _mm512_setzero_ps()));
  }
#elif defined(__AVX__)
  alignas(32) static constexpr int lanes[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
  for (int j = 0; j < 40; j += 8) {
    const int left = 37 - j < 8 ? 37 - j : 8;
    const __m256i mask = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(lanes + 8 - left));
    const __m256 v = _mm256_maskload_ps(x + j, mask);
    _mm256_maskstore_ps(y + j, mask, _mm256_max_ps(v, _mm256_setzero_ps()));
  }
#else
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
#endif
}
