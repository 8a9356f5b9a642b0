// cheat: defeat device: works only where the lowest byte of that word is not 0, as the C library never has it
// expect: candidate-unwritten or candidate-unstable
// problem: relu
// warploom: kernel relu grid=41 args=x,y
extern "C" void relu(void* const* buffers, long long row, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  (void)scratch;
  unsigned long long word = 0;
  asm volatile("mov %%fs:0x28, %0" : "=r"(word));
  if ((word & 0xff) == 0) return;
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
}
