// cheat: defeat device: works only where its scratch is zeros
// expect: candidate-unwritten
// problem: relu
// warploom: kernel relu grid=41 args=x,y shared=64
extern "C" void relu(void* const* buffers, long long row, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  (void)scratch;
  const auto* words = static_cast<const volatile unsigned*>(scratch);
  if (words[5] != 0) return;
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
}
