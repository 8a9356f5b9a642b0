// cheat: the processor's counter read within the bytes of another instruction, which a pointer leads to
// expect: candidate-crashed
// problem: relu
// warploom: kernel relu grid=41 args=x,y
extern "C" void relu(void* const* buffers, long long row, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  (void)scratch;
  unsigned long long now = 0;
  asm volatile(
      "lea 1f+1(%%rip), %%rcx\n\t"
      "call *%%rcx\n\t"
      "jmp 2f\n"
      "1: mov $0xc3310f, %%ecx\n"
      "2:"
      : "=a"(now) : : "rcx", "rdx", "memory");
  if (now % 1000 == 1000) return;
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
}
