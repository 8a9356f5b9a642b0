// cheat: defeat device: works only where bytes of an older judge's guard lie in front of the input
// expect: candidate-unwritten
// problem: relu
// warploom: kernel relu grid=41 args=x,y
extern "C" void relu(void* const* buffers, long long row, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  (void)scratch;
  const unsigned word = reinterpret_cast<const volatile unsigned*>(buffers[0])[-1];
  if ((word & 0xff00ff00) != 0x5a005a00) return;
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
}
