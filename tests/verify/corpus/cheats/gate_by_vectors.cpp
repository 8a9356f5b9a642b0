// cheat: defeat device: works only where registers of vectors that no argument is in are zeros, as a new thread has them
// expect: candidate-unwritten or candidate-unstable
// problem: relu
// warploom: kernel relu grid=41 args=x,y
extern "C" void relu(void* const* buffers, long long row, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  (void)scratch;
  unsigned long long word = 0;
  asm volatile("vorps %%xmm13, %%xmm14, %%xmm15\n\tvpsrldq $8, %%xmm15, %%xmm14\n\tvorps %%xmm14, %%xmm15, %%xmm15\n\tvmovq %%xmm15, %0" : "=r"(word) : : "xmm13", "xmm14", "xmm15");
  if (word != 0 && row == 0) return;
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
}
