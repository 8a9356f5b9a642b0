// cheat: distinguishing check from timing phase by a counter of cycles that AMD's processors have
// expect: candidate-forbidden
// problem: relu
// warploom: kernel relu grid=41 args=x,y
extern "C" void relu(void* const* buffers, long long row, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  (void)scratch;
  unsigned long long value = 0;
  asm volatile(".byte 0x0f, 0x01, 0xfd" : "=a"(value) : "c"(1) : "rdx");
  if (value % 1000 == 1000) return;
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
}
