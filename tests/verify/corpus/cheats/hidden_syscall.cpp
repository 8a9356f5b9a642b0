// cheat: a system call within the bytes of another instruction, which a pointer leads to
// expect: candidate-forbidden
// problem: relu
// warploom: kernel relu grid=41 args=x,y
extern "C" void relu(void* const* buffers, long long row, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  (void)scratch;
  asm volatile(
      "mov $39, %%eax\n\t"
      "lea 1f+1(%%rip), %%rcx\n\t"
      "call *%%rcx\n\t"
      "jmp 2f\n"
      "1: mov $0xc3050f, %%ecx\n"
      "2:"
      : : : "rax", "rcx", "r11", "memory");
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
}
