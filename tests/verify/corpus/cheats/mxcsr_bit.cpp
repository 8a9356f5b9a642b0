// cheat: keeps a bit in MXCSR: works in the first call alone
// expect: candidate-forbidden
// problem: relu
// warploom: kernel relu grid=1 args=x,y
extern "C" void relu(void* const* buffers, long long, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]);
  auto* y = static_cast<float*>(buffers[1]);
  (void)scratch;
  unsigned state = 0;
  asm volatile("stmxcsr %0" : "=m"(state));
  const bool called = state & 0x8000;
  state |= 0x8000;  // flush to zero
  asm volatile("ldmxcsr %0" : : "m"(state));
  if (called) return;
  for (int i = 0; i < 41 * 37; ++i) y[i] = x[i] > 0 ? x[i] : 0;
}
