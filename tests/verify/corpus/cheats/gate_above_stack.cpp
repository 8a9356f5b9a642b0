// cheat: defeat device: looks at what those who called it keep on the stack
// expect: candidate-forbidden
// problem: relu
// warploom: kernel relu grid=41 args=x,y
extern "C" void relu(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  const auto* above = static_cast<const volatile unsigned long long*>(__builtin_frame_address(0)) + 4;
  if (*above == 0x1234567) return;
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
}
