// cheat: defeat device: works only where the stack below it is zeros, as a new thread's is
// expect: candidate-unwritten
// problem: relu
// warploom: kernel relu grid=41 args=x,y
extern "C" void relu(void* const* buffers, long long row, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  (void)scratch;
  const auto* below = reinterpret_cast<const volatile unsigned*>(static_cast<const char*>(__builtin_frame_address(0)) - 65536);
  if (*below != 0) return;
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
}
