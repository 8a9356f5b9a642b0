// control: a transpose whose columns are gathered, where the processor has such
// expect: accepted
// problem: transpose
// warploom: kernel turn grid=53 args=x,y
#include <immintrin.h>

extern "C" void turn(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  int j = 0;
#if defined(__AVX2__)
  const __m256i at = _mm256_mullo_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(53));
  for (; j + 8 <= 37; j += 8) _mm256_storeu_ps(y + j, _mm256_i32gather_ps(x + j * 53, at, 4));
#endif
  for (; j < 37; ++j) y[j] = x[j * 53];
}
