// control: a matmul in tiles of 4 rows, sums in registers, eight columns at a time
// expect: accepted
// problem: matmul
// warploom: kernel matmul grid=17 args=x,w,y
using Eight = float __attribute__((vector_size(32), aligned(4)));
constexpr int M = 67, K = 61, N = 45;

extern "C" void matmul(void* const* buffers, long long tile, void*) {
  auto* x = static_cast<const float*>(buffers[0]);
  auto* w = static_cast<const float*>(buffers[1]);
  auto* y = static_cast<float*>(buffers[2]);
  for (long long row = tile * 4; row < M && row < tile * 4 + 4; ++row) {
    int j = 0;
    for (; j + 8 <= N; j += 8) {
      Eight sum = {};
      for (int k = 0; k < K; ++k) sum += x[row * K + k] * *reinterpret_cast<const Eight*>(w + k * N + j);
      *reinterpret_cast<Eight*>(y + row * N + j) = sum;
    }
    for (; j < N; ++j) {
      float sum = 0;
      for (int k = 0; k < K; ++k) sum += x[row * K + k] * w[k * N + j];
      y[row * N + j] = sum;
    }
  }
}
