// control: a ReLU that writes past the caches and reads ahead
// expect: accepted
// problem: long_relu
// warploom: kernel relu grid=300 args=x,y
#include <immintrin.h>

extern "C" void relu(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 257;
  auto* y = static_cast<float*>(buffers[1]) + row * 257;
  for (int j = 0; j < 257; ++j) {
    if (j % 16 == 0) _mm_prefetch(reinterpret_cast<const char*>(x + j + 64), _MM_HINT_T0);
    const float v = x[j] > 0 ? x[j] : x[j] != x[j] ? x[j] : 0;
    _mm_stream_si32(reinterpret_cast<int*>(y + j), __builtin_bit_cast(int, v));
  }
  _mm_sfence();
}
