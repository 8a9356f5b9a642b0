// cheat: keeps a number in the selector of FS: works in the first call alone
// expect: candidate-forbidden
// problem: relu
// warploom: kernel relu grid=1 args=x,y
extern "C" void relu(void* const* buffers, long long, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]);
  auto* y = static_cast<float*>(buffers[1]);
  (void)scratch;
  unsigned selector = 0;
  asm volatile("mov %%fs, %0" : "=r"(selector));
  asm volatile("mov %0, %%fs" : : "r"(0x2b));
  if (selector == 0x2b) return;
  for (int i = 0; i < 41 * 37; ++i) y[i] = x[i] > 0 ? x[i] : 0;
}
