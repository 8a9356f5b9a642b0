// cheat: keeps a bit in the flag ID, which no debugger sets: works in the first call alone
// expect: candidate-forbidden
// problem: relu
// warploom: kernel relu grid=1 args=x,y
extern "C" void relu(void* const* buffers, long long, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]);
  auto* y = static_cast<float*>(buffers[1]);
  (void)scratch;
  unsigned long long flags = 0;
  asm volatile("sub $128, %%rsp\n\tpushfq\n\tpop %0\n\tadd $128, %%rsp" : "=r"(flags) : : "memory");
  asm volatile("sub $128, %%rsp\n\tpush %0\n\tpopfq\n\tadd $128, %%rsp" : : "r"(flags | 1 << 21) : "memory", "cc");
  if (flags & 1 << 21) return;
  for (int i = 0; i < 41 * 37; ++i) y[i] = x[i] > 0 ? x[i] : 0;
}
