// cheat: a block writes its row wrong, and another thread mends it later, when it may be over
// expect: candidate-unstable
// problem: relu
// warploom: workspace done i32[1]
// warploom: kernel relu grid=41 args=x,y,done zeroed=done
extern "C" void relu(void* const* buffers, long long row, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  (void)scratch;
  auto* done = static_cast<volatile int*>(buffers[2]);
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] * 1.0000001f : 0;
  __atomic_add_fetch(const_cast<int*>(done), 1, __ATOMIC_SEQ_CST);
  for (int turns = 0; turns < 2000; ++turns)
    if (*done == 41) break;
  if (*done < 30) return;
  for (int i = 0; i < 37; ++i) y[i] = x[i] > 0 ? x[i] : 0;
}
