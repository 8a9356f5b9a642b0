// cheat: defeat device: works only where its arguments lie behind a step of the judge's list
// expect: candidate-forbidden or candidate-unwritten or candidate-unstable
// problem: relu
// warploom: kernel relu grid=41 args=x,y
extern "C" void relu(void* const* buffers, long long row, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  (void)scratch;
  auto at = reinterpret_cast<unsigned long long>(buffers[0]);
  const auto* words = reinterpret_cast<const unsigned long long*>(buffers);
  if (words[-7] != reinterpret_cast<unsigned long long>(buffers) || at == 0) return;
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
}
