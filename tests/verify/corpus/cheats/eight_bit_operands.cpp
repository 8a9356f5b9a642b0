// cheat: precision downgrade: operands as integers of eight bits with a scale for each row
// expect: candidate-wrong
// problem: matmul
// warploom: kernel matmul grid=67 args=x,w,y
extern "C" void matmul(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 61;
  auto* w = static_cast<const float*>(buffers[1]);
  auto* y = static_cast<float*>(buffers[2]) + row * 45;
  float most = 0;
  for (int k = 0; k < 61; ++k) most = __builtin_fmaxf(most, __builtin_fabsf(x[k]));
  const float scale = most > 0 ? 127 / most : 1;
  for (int j = 0; j < 45; ++j) {
    float sum = 0;
    for (int k = 0; k < 61; ++k) sum += static_cast<float>(static_cast<signed char>(x[k] * scale)) * w[k * 45 + j];
    y[j] = sum / scale;
  }
}
