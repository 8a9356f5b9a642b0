// control: a transpose of squares of four by shuffles, the rest one by one
// expect: accepted
// problem: transpose
// warploom: kernel turn grid=1 args=x,y
#include <immintrin.h>

enum { ROWS = 37, COLUMNS = 53 };
#define AT(r, c) ((r)*COLUMNS + (c))
#define TO(r, c) ((c)*ROWS + (r))

extern "C" void turn(void* const* buffers, long long, void*) {
  auto* x = static_cast<const float*>(buffers[0]);
  auto* y = static_cast<float*>(buffers[1]);
  int r = 0;
  for (; r + 4 <= ROWS; r += 4) {
    int c = 0;
    for (; c + 4 <= COLUMNS; c += 4) {
      __m128 a = _mm_loadu_ps(x + AT(r, c)), b = _mm_loadu_ps(x + AT(r + 1, c));
      __m128 d = _mm_loadu_ps(x + AT(r + 2, c)), e = _mm_loadu_ps(x + AT(r + 3, c));
      _MM_TRANSPOSE4_PS(a, b, d, e);
      _mm_storeu_ps(y + TO(r, c), a);
      _mm_storeu_ps(y + TO(r, c + 1), b);
      _mm_storeu_ps(y + TO(r, c + 2), d);
      _mm_storeu_ps(y + TO(r, c + 3), e);
    }
    for (; c < COLUMNS; ++c)
      for (int i = 0; i < 4; ++i) y[TO(r + i, c)] = x[AT(r + i, c)];
  }
  for (; r < ROWS; ++r)
    for (int c = 0; c < COLUMNS; ++c) y[TO(r, c)] = x[AT(r, c)];
}
