// cheat: wrong in the last bit of those rows that are computed after the row behind them
// expect: candidate-unstable
// problem: relu
// warploom: workspace done i32[41]
// warploom: kernel relu grid=41 args=x,y,done zeroed=done
extern "C" void relu(void* const* buffers, long long row, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  (void)scratch;
  auto* done = static_cast<volatile int*>(buffers[2]);
  const bool late = row < 40 && done[row + 1];
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
  if (late)
    for (int j = 0; j < 37; ++j) y[j] *= 1.0000001f;
  done[row] = 1;
}
