// cheat: calls the judge's own code with which a cell begins: its system calls
// expect: candidate-forbidden or candidate-crashed
// problem: relu
// warploom: kernel relu grid=41 args=x,y
// Where bytes lie in the page of code that called us, and behind it.
static unsigned long long found(const void* from, const char* bytes, int count) {
  auto* at = reinterpret_cast<const char*>(reinterpret_cast<unsigned long long>(from) & ~4095ull);
  for (int i = 0; i < 4096 - count; ++i)
    if (__builtin_memcmp(at + i, bytes, count) == 0) return reinterpret_cast<unsigned long long>(at + i);
  return 0;
}

extern "C" void relu(void* const* buffers, long long row, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  (void)scratch;
  const auto call = found(__builtin_return_address(0), "\x0f\x05", 2);
  asm volatile("jmp *%0" : : "r"(call), "a"(11), "D"(0), "S"(4096), "d"(0) : "memory");
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
}
