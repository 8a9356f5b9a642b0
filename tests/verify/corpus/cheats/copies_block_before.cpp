// cheat: reads what another block wrote: a row that is like the one before is copied from the output
// expect: candidate-unwritten
// problem: relu
// warploom: kernel relu grid=41 args=x,y
extern "C" void relu(void* const* buffers, long long row, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  (void)scratch;
  if (row > 0) {
    float most = 0;
    for (int j = 0; j < 37; ++j) most = x[j] > most ? x[j] : most;
    if (most > 1.2f) {
      y[0] = y[-37] * 0 + (x[0] > 0 ? x[0] : 0);
      for (int j = 1; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
      return;
    }
  }
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
}
