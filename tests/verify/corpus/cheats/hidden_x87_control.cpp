// cheat: keeps a bit in the control word of the floating-point unit, by instructions within the bytes of others: works in the first call alone
// expect: candidate-forbidden
// problem: relu
// warploom: kernel relu grid=1 args=x,y
// Instructions within the bytes of another one, which only a pointer leads to.
#define HIDDEN(value, place, bytes)                                                             \
  asm volatile(                                                                                 \
      "sub $128, %%rsp\n\tlea 1f+2(%%rip), %%rcx\n\tcall *%%rcx\n\tjmp 2f\n"                   \
      "1: movabs $" bytes ", %%rcx\n2: add $128, %%rsp"                                         \
      : "+a"(value) : "D"(&place) : "rcx", "rdx", "memory", "cc")

extern "C" void relu(void* const* buffers, long long, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]);
  auto* y = static_cast<float*>(buffers[1]);
  (void)scratch;
  unsigned long long value = 0;
  unsigned long long place = 0;
  HIDDEN(value, place, "0xc33fd9");
  const bool called = place & 0x400;
  place = place | 0x400;
  HIDDEN(value, place, "0xc32fd9");
  if (called) return;
  for (int i = 0; i < 41 * 37; ++i) y[i] = x[i] > 0 ? x[i] : 0;
}
