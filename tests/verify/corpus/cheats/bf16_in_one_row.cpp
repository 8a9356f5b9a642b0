// cheat: precision downgrade: operands cut to bf16 in one row of 67
// expect: candidate-wrong
// problem: matmul
// warploom: kernel matmul grid=67 args=x,w,y
static float cut(float v, unsigned mask) {
  return __builtin_bit_cast(float, (__builtin_bit_cast(unsigned, v) + 0x8000) & mask);
}

extern "C" void matmul(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 61;
  auto* w = static_cast<const float*>(buffers[1]);
  auto* y = static_cast<float*>(buffers[2]) + row * 45;
  const unsigned mask = row == 31 ? 0xffff0000 : 0xffffffff;
  for (int j = 0; j < 45; ++j) {
    float sum = 0;
    for (int k = 0; k < 61; ++k) sum += row == 31 ? cut(x[k], mask) * cut(w[k * 45 + j], mask) : x[k] * w[k * 45 + j];
    y[j] = sum;
  }
}
