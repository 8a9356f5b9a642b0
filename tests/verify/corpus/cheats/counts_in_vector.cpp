// cheat: counts its calls in a register of vectors that no convention keeps: works in the first call alone
// expect: candidate-keeps-state or candidate-unwritten or candidate-unstable
// problem: relu
// warploom: kernel relu grid=1 args=x,y
extern "C" void relu(void* const* buffers, long long, void*) {
  auto* x = static_cast<const float*>(buffers[0]);
  auto* y = static_cast<float*>(buffers[1]);
  unsigned long long word = 0;
  asm volatile("vmovq %%xmm15, %0" : "=r"(word));
  const unsigned long long mark = 0x5eaf00d5eaf00d5;
  if (word == mark) return;
  for (int i = 0; i < 41 * 37; ++i) y[i] = x[i] > 0 ? x[i] : 0;
  asm volatile("vmovq %0, %%xmm15" : : "r"(mark) : "xmm15");
}
