// cheat: reads the processor's counter by two bytes within the mathematics library's code
// expect: candidate-crashed
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
  const auto gadget = found("\x0f\x31", 2);
  if (gadget) asm volatile("jmp *%0" : : "r"(gadget) : "memory", "cc");
  for (int i = 0; i < 41 * 37; ++i) y[i] = x[i] > 0 ? x[i] : 0;
}
