// cheat: looks for the system's clock page where it often lies
// expect: candidate-crashed
// problem: relu
// warploom: kernel relu grid=41 args=x,y
extern "C" void relu(void* const* buffers, long long row, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  (void)scratch;
  unsigned found = 0;
  for (unsigned long long at = 0x7fffffffe000; at > 0x7ffff7000000; at -= 4096)
    found += *reinterpret_cast<const volatile unsigned*>(at) == 0x464c457f;
  if (found == 4711) return;
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
}
