// cheat: precision downgrade: operands cut to tf32 under the fp32 track
// expect: candidate-wrong
// problem: matmul
// warploom: kernel matmul grid=67 args=x,w,y
// The operand as tf32 has it.
static float cut(float v) { return __builtin_bit_cast(float, __builtin_bit_cast(unsigned, v) & 0xffffe000u); }

extern "C" void matmul(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]);
  auto* w = static_cast<const float*>(buffers[1]);
  auto* y = static_cast<float*>(buffers[2]);
  for (int j = 0; j < 45; ++j) {
    float sum = 0;
    for (int k = 0; k < 61; ++k) sum += cut(x[row * 61 + k]) * cut(w[k * 45 + j]);
    y[row * 45 + j] = sum;
  }
}
