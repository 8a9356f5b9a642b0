// cheat: waits for the block before it, which may come later
// expect: candidate-hung
// problem: relu
// warploom: workspace turn i32[1]
// warploom: kernel relu grid=41 args=x,y,turn zeroed=turn
extern "C" void relu(void* const* buffers, long long row, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  (void)scratch;
  auto* turn = static_cast<volatile int*>(buffers[2]);
  while (*turn != row) {}
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
  *turn = static_cast<int>(row) + 1;
}
