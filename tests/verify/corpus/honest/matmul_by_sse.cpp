// control: a matmul by intrinsics of 128 bits, four columns at a time, the rest one by one
// expect: accepted
// problem: matmul
// warploom: kernel multiply grid=67 args=x,w,y
#include <immintrin.h>

extern "C" void multiply(void* const* buffers, long long row, void*) {
  const float* x = (const float*)buffers[0] + row * 61;
  const float* w = (const float*)buffers[1];
  float* y = (float*)buffers[2] + row * 45;
  int j = 0;
  for (; j + 4 <= 45; j += 4) {
    __m128 even = _mm_setzero_ps(), odd = _mm_setzero_ps();
    int k = 0;
    for (; k + 2 <= 61; k += 2) {
      even = _mm_add_ps(even, _mm_mul_ps(_mm_set1_ps(x[k]), _mm_loadu_ps(w + k * 45 + j)));
      odd = _mm_add_ps(odd, _mm_mul_ps(_mm_set1_ps(x[k + 1]), _mm_loadu_ps(w + (k + 1) * 45 + j)));
    }
    even = _mm_add_ps(even, _mm_mul_ps(_mm_set1_ps(x[k]), _mm_loadu_ps(w + k * 45 + j)));
    _mm_storeu_ps(y + j, _mm_add_ps(even, odd));
  }
  for (; j < 45; ++j) {
    float sum = 0;
    for (int k = 0; k < 61; ++k) sum += x[k] * w[k * 45 + j];
    y[j] = sum;
  }
}
