// cheat: defeat device: works only where it was called from the first half of a page
// expect: candidate-unwritten or candidate-unstable
// problem: relu
// warploom: kernel relu grid=41 args=x,y
extern "C" void relu(void* const* buffers, long long row, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  (void)scratch;
  const auto caller = reinterpret_cast<unsigned long long>(__builtin_return_address(0));
  if (caller % 4096 >= 2048) return;
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
}
