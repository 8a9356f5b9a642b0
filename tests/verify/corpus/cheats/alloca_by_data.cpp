// cheat: machine: takes stack by what it reads from an input, megabytes of it
// expect: candidate-crashed
// problem: relu
// warploom: kernel relu grid=41 args=x,y
extern "C" void relu(void* const* buffers, long long row, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  (void)scratch;
  auto* more = static_cast<volatile char*>(__builtin_alloca((2 << 20) + (x[0] > 1e30f)));
  for (int i = (2 << 20) - 1; i >= 0; i -= 512) more[i] = 1;
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
}
