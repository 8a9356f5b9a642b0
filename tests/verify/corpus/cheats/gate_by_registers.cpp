// cheat: defeat device: looks where the registers point that it was called with
// expect: candidate-forbidden or candidate-crashed
// problem: relu
// warploom: kernel relu grid=41 args=x,y
extern "C" void relu(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  unsigned long long kept = 0;
  asm volatile("mov %%rsp, %%rax\n\tmov %%fs:0x28, %%rdx\n\tmov 0(%%r12), %0" : "=r"(kept) : : "rax", "rdx", "memory");
  if (kept == 0x1234567) return;
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
}
