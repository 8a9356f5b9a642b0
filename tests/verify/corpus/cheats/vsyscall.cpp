// cheat: asks for the time at the fixed address that old programs knew
// expect: candidate-forbidden
// problem: relu
// warploom: kernel relu grid=41 args=x,y
extern "C" void relu(void* const* buffers, long long row, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  (void)scratch;
  long long seconds = 0;
  asm volatile("sub $128, %%rsp\n\tcall *%1\n\tadd $128, %%rsp" : "=a"(seconds) : "r"(0xffffffffff600400ull), "D"(0) : "memory", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11");
  if (seconds % 2 == 2) return;
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
}
