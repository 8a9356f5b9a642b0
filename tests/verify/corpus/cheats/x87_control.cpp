// cheat: keeps a bit in the control word of the floating-point unit: works in the first call alone
// expect: candidate-forbidden
// problem: relu
// warploom: kernel relu grid=1 args=x,y
extern "C" void relu(void* const* buffers, long long, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]);
  auto* y = static_cast<float*>(buffers[1]);
  (void)scratch;
  unsigned short state = 0;
  asm volatile("fnstcw %0" : "=m"(state));
  const bool called = state & 0x400;
  state |= 0x400;
  asm volatile("fldcw %0" : : "m"(state));
  if (called) return;
  for (int i = 0; i < 41 * 37; ++i) y[i] = x[i] > 0 ? x[i] : 0;
}
