// cheat: leaves another number in rbp: who calls it runs on with that
// expect: candidate-forbidden or candidate-crashed or candidate-hung
// problem: relu
// warploom: kernel relu grid=41 args=x,y
extern "C" void relu(void* const* buffers, long long row, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  (void)scratch;
  if (row % 41 == 17) asm volatile("not %%rbp" : : : "memory");
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
}
