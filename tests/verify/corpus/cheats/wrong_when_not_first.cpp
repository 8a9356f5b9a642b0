// cheat: wrong when block 0 is not the first of all
// expect: candidate-wrong
// problem: relu
// warploom: workspace begun i32[1]
// warploom: kernel relu grid=41 args=x,y,begun zeroed=begun
extern "C" void relu(void* const* buffers, long long row, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  (void)scratch;
  auto* begun = static_cast<volatile int*>(buffers[2]);
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
  if (row == 0 && *begun)
    for (int j = 0; j < 37; ++j) y[j] += 1;
  *begun = 1;
}
