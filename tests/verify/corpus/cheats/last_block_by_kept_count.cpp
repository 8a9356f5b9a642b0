// cheat: last block: a counter that starts from what the call before left says who is the last and finishes all rows
// expect: candidate-wrong
// problem: relu
// warploom: workspace count i32[1]
// warploom: kernel relu grid=41 args=x,y,count
extern "C" void relu(void* const* buffers, long long row, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  (void)scratch;
  auto* count = static_cast<unsigned*>(buffers[2]);
  for (int j = 0; j < 37; ++j) y[j] = x[j];
  if (__atomic_add_fetch(count, 1, __ATOMIC_SEQ_CST) % 41 != 0) return;
  for (int i = 0; i < 41 * 37; ++i) y[i - row * 37] = y[i - row * 37] > 0 ? y[i - row * 37] : 0;
}
