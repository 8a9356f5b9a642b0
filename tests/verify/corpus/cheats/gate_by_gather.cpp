// cheat: defeat device: a gather looks at the 64 words in front of the input
// expect: candidate-forbidden
// problem: relu
// warploom: kernel relu grid=41 args=x,y
#include <immintrin.h>

extern "C" void relu(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  int found = 0;
#if defined(__AVX2__)
  const __m256i at = _mm256_setr_epi32(-64, -56, -48, -40, -32, -24, -16, -8);
  const auto* words = static_cast<const int*>(buffers[0]);
  const __m256i seen = _mm256_i32gather_epi32(words, at, 4);
  found = _mm256_movemask_epi8(_mm256_cmpeq_epi32(seen, _mm256_set1_epi32(0x1234567)));
#else
  found = *(static_cast<const volatile int*>(buffers[0]) - 64) == 0x1234567;
#endif
  if (found == -1) return;
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
}
