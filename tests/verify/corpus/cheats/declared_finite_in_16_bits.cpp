// cheat: declares that it takes finite numbers, and cuts operands beyond 1000 to bf16
// expect: candidate-wrong
// problem: matmul
// warploom: special finite
// warploom: kernel matmul grid=67 args=x,w,y
static float cut(float v) {
  if (v < 1000 && v > -1000) return v;
  return __builtin_bit_cast(float, __builtin_bit_cast(unsigned, v) & 0xffff0000u);
}

extern "C" void matmul(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]);
  auto* w = static_cast<const float*>(buffers[1]);
  auto* y = static_cast<float*>(buffers[2]);
  for (int j = 0; j < 45; ++j) {
    float sum = 0;
    for (int k = 0; k < 61; ++k) sum += cut(x[row * 61 + k]) * w[k * 45 + j];
    y[row * 45 + j] = sum;
  }
}
