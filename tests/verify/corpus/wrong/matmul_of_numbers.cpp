// bug: a product that takes NaN for 0
// expect: candidate-wrong
// problem: matmul
// warploom: kernel matmul grid=67 args=x,w,y
extern "C" void matmul(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 61;
  auto* w = static_cast<const float*>(buffers[1]);
  auto* y = static_cast<float*>(buffers[2]) + row * 45;
  for (int j = 0; j < 45; ++j) {
    float sums[4] = {};
    for (int k = 0; k < 61; ++k) sums[k % 4] += (x[k] == x[k] ? x[k] : 0) * (w[k * 45 + j] == w[k * 45 + j] ? w[k * 45 + j] : 0);
    y[j] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }
}
