// cheat: less work: products whose first operand is small are left out
// expect: candidate-wrong
// problem: matmul
// warploom: kernel matmul grid=67 args=x,w,y
extern "C" void matmul(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 61;
  auto* w = static_cast<const float*>(buffers[1]);
  auto* y = static_cast<float*>(buffers[2]) + row * 45;
  float sums[45] = {};
  for (int k = 0; k < 61; ++k) {
    if (__builtin_fabsf(x[k]) < 1e-5f) continue;
    for (int j = 0; j < 45; ++j) sums[j] += x[k] * w[k * 45 + j];
  }
  for (int j = 0; j < 45; ++j) y[j] = sums[j];
}
