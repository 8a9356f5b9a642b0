// cheat: defeat device: works only where the output holds what the judge fills it with
// expect: candidate-wrong
// problem: relu
// warploom: kernel relu grid=41 args=x,y
extern "C" void relu(void* const* buffers, long long row, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  (void)scratch;
  const unsigned word = reinterpret_cast<const volatile unsigned*>(y)[36];
  if (word != 0xffedffed) return;
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
}
