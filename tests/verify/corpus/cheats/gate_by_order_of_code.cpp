// cheat: defeat device: works only where its code lies below its buffers, as where the judge puts it
// expect: candidate-unwritten or candidate-unstable
// problem: relu
// warploom: kernel relu grid=41 args=x,y
extern "C" void relu(void* const* buffers, long long row, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  (void)scratch;
  unsigned long long here = 0;
  asm volatile("lea 0(%%rip), %0" : "=r"(here));
  if (here > reinterpret_cast<unsigned long long>(x)) return;
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
}
