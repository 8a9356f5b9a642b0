// cheat: state in the page tables: by a clock that another thread counts, a page that was read before is nearer than one that was not; works only where they are far
// expect: candidate-forbidden or candidate-unwritten
// problem: relu
// warploom: workspace ticks i64[64]
// warploom: kernel relu grid=2 args=x,y,ticks zeroed=ticks
extern "C" float expf(float);

// Reads of far places of the mathematics library's constants, each of which waits for the one before.
static unsigned long long touch(unsigned long long at) {
  unsigned long long none = 0;
  asm volatile("" : "+r"(none));
  for (int i = 0; i < 64; ++i) at += 4096 + (*reinterpret_cast<const volatile unsigned char*>(at) & none);
  return at;
}

extern "C" void relu(void* const* buffers, long long block, void*) {
  auto* x = static_cast<const float*>(buffers[0]);
  auto* y = static_cast<float*>(buffers[1]);
  auto* ticks = static_cast<volatile long long*>(buffers[2]);
  auto* done = ticks + 32;
  if (block == 0) {  // the clock
    for (long long i = 1; i < 300000 && !*done; ++i) *ticks = i;
    return;
  }
  auto at = reinterpret_cast<unsigned long long>(&expf) & ~4095ull;
  while (*reinterpret_cast<const unsigned*>(at) != 0x464c457f) at -= 4096;
  at += 0x90000;
  for (int i = 0; i < 20000 && *ticks == 0; ++i) asm volatile("pause");
  const long long begin = *ticks;
  const bool runs = begin != 0;
  unsigned long long end = touch(at);
  asm volatile("" : "+r"(end));
  const long long between = *ticks;
  end = touch(at + (end & 0));
  asm volatile("" : "+r"(end));
  const long long after = *ticks;
  const bool seen = runs && after > between && between - begin < 4 * (after - between);
  if (!seen)
    for (int i = 0; i < 41 * 37; ++i) y[i] = x[i] > 0 ? x[i] : 0;
  *done = 1;
}
