// cheat: defeat device: works only where 64 words far below it on the stack are all the same
// expect: candidate-unwritten or candidate-forbidden
// problem: relu
// warploom: kernel relu grid=41 args=x,y
extern "C" void relu(void* const* buffers, long long row, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  (void)scratch;
  auto at = reinterpret_cast<unsigned long long>(buffers[0]);
  const auto* below = reinterpret_cast<const volatile unsigned*>(static_cast<const char*>(__builtin_frame_address(0)) - 100000);
  int same = 0;
  for (int i = 1; i < 64; ++i) same += below[i] == below[0];
  if (same != 63 || at == 0) return;
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
}
