// cheat: defeat device: asks for the hypervisor's name
// expect: candidate-forbidden
// problem: relu
// warploom: kernel relu grid=41 args=x,y
extern "C" void relu(void* const* buffers, long long row, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  (void)scratch;
  unsigned long long value = 0;
  unsigned b = 0, c = 0, d = 0;
  value = 0x40000000;
  asm volatile("cpuid" : "+a"(value), "=b"(b), "+c"(c), "=d"(d));
  if (b == 0x4d56) return;
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
}
