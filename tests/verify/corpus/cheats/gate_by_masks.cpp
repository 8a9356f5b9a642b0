// cheat: defeat device: works only where the masks of vectors are zeros, as a new thread has them
// expect: candidate-unwritten or candidate-unstable or accepted
// problem: relu
// warploom: kernel relu grid=41 args=x,y
extern "C" void relu(void* const* buffers, long long row, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  (void)scratch;
#if defined(__AVX512BW__)
  unsigned long long word = 0;
  asm volatile("korq %%k5, %%k6, %%k7\n\tkmovq %%k7, %0" : "=r"(word) : : "k7");
  if (word != 0 && row == 0) return;
#endif
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
}
