// cheat: keeps a bit in the flag ID, set by two bytes within the mathematics library's code that are popf and ret there: works in the first call alone
// expect: candidate-forbidden
// problem: relu
// warploom: kernel relu grid=1 args=x,y
extern "C" float expf(float);

// Where bytes lie in the code of the mathematics library, which begins somewhere before expf.
static unsigned long long found(const char* bytes, int count) {
  const auto* at = reinterpret_cast<const char*>(reinterpret_cast<unsigned long long>(&expf) & ~4095ull);
  while (*reinterpret_cast<const unsigned*>(at) != 0x464c457f) at -= 4096;
  at += 64 << 10;
  for (int i = 0; i < 448 << 10; ++i)
    if (__builtin_memcmp(at + i, bytes, count) == 0) return reinterpret_cast<unsigned long long>(at + i);
  return 0;
}

extern "C" void relu(void* const* buffers, long long, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]);
  auto* y = static_cast<float*>(buffers[1]);
  (void)scratch;
  const auto gadget = found("\x9d\xc3", 2);
  unsigned long long flags = 0;
  asm volatile("sub $128, %%rsp\n\tpushfq\n\tpop %0\n\tadd $128, %%rsp" : "=r"(flags) : : "memory");
  if (gadget)
    asm volatile(
        "sub $128, %%rsp\n\t"
        "lea 1f(%%rip), %%rcx\n\t"
        "push %%rcx\n\t"
        "push %0\n\t"
        "jmp *%1\n"
        "1: add $128, %%rsp"
        : : "r"(flags | 1 << 21), "r"(gadget) : "memory", "cc", "rcx");
  if (flags & 1 << 21) return;
  for (int i = 0; i < 41 * 37; ++i) y[i] = x[i] > 0 ? x[i] : 0;
}
