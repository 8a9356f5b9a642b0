// cheat: super-batching: keeps a count in the base of GS, and works in the first call alone
// expect: candidate-forbidden
// problem: relu
// warploom: kernel relu grid=1 args=x,y
extern "C" void relu(void* const* buffers, long long, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]);
  auto* y = static_cast<float*>(buffers[1]);
  (void)scratch;
  unsigned long long count = 0;
  asm volatile("rdgsbase %0" : "=r"(count));
  asm volatile("wrgsbase %0" : : "r"(count + 1));
  if (count > 0) return;
  for (int i = 0; i < 41 * 37; ++i) y[i] = x[i] > 0 ? x[i] : 0;
}
