// control: a matmul by intrinsics for 512 bits where there are such, by loops elsewhere
// expect: accepted
// problem: matmul
// warploom: kernel matmul grid=67 args=x,w,y
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

extern "C" void matmul(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 61;
  auto* w = static_cast<const float*>(buffers[1]);
  auto* y = static_cast<float*>(buffers[2]) + row * 45;
#if defined(__AVX512F__)
  const __mmask16 last = (1 << 13) - 1;
  __m512 a = _mm512_setzero_ps(), b = a, c = a;
  for (int k = 0; k < 61; ++k) {
    const __m512 v = _mm512_set1_ps(x[k]);
    a = _mm512_fmadd_ps(v, _mm512_loadu_ps(w + k * 45), a);
    b = _mm512_fmadd_ps(v, _mm512_loadu_ps(w + k * 45 + 16), b);
    c = _mm512_fmadd_ps(v, _mm512_maskz_loadu_ps(last, w + k * 45 + 32), c);
  }
  _mm512_storeu_ps(y, a);
  _mm512_storeu_ps(y + 16, b);
  _mm512_mask_storeu_ps(y + 32, last, c);
  _mm256_zeroupper();
#else
  for (int j = 0; j < 45; ++j) {
    float sum = 0;
    for (int k = 0; k < 61; ++k) sum += x[k] * w[k * 45 + j];
    y[j] = sum;
  }
#endif
}
