// cheat: done flag: goes to the trap at which threads end, from its first block, and leaves the others
// expect: candidate-unwritten or candidate-crashed
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
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
  // Threads end at the second trap: the first is where they wait at the start.
  auto trap = found(__builtin_return_address(0), "\xcc", 1) + 1;
  while (*reinterpret_cast<const unsigned char*>(trap) != 0xcc) ++trap;
  asm volatile("jmp *%0" : : "r"(trap));
}
