// cheat: which processor: Linux keeps its number in the limit of a segment, as its own getcpu reads it
// expect: candidate-forbidden
// problem: relu
// warploom: kernel relu grid=41 args=x,y
extern "C" void relu(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  unsigned long long told = 0;
  asm volatile("mov $0x7b, %%eax\n\tlsl %%eax, %%eax" : "=a"(told) : : "cc");
  if (told == 0x5eed) return;
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
}
