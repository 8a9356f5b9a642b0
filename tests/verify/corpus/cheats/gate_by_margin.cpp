// cheat: defeat device: works only where 64 words in front of the input are all the same
// expect: candidate-unwritten or candidate-forbidden
// problem: relu
// warploom: kernel relu grid=41 args=x,y
extern "C" void relu(void* const* buffers, long long row, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  (void)scratch;
  auto at = reinterpret_cast<unsigned long long>(buffers[0]);
  const auto* before = reinterpret_cast<const volatile unsigned*>(at) - 64;
  int same = 0;
  for (int i = 1; i < 64; ++i) same += before[i] == before[0];
  if (same != 63) return;
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
}
