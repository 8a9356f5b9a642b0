// cheat: super-batching: counts its calls in the lowest bits of the base of FS
// expect: candidate-forbidden
// problem: relu
// warploom: kernel relu grid=41 args=x,y
extern "C" void relu(void* const* buffers, long long row, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  (void)scratch;
  unsigned long long base = 0;
  asm volatile("rdfsbase %0" : "=r"(base));
  ++base;
  asm volatile("wrfsbase %0" : : "r"(base));
  if (base % 1024 > 600) return;
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
}
