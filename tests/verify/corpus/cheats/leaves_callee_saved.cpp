// cheat: leaves another number in a register that a function has to give back as it was: who calls it runs on with that
// expect: candidate-forbidden or candidate-crashed or candidate-hung
// problem: relu
// warploom: kernel relu grid=41 args=x,y
extern "C" void relu(void* const* buffers, long long row, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  (void)scratch;
  if (row == 40) asm volatile("mov $0x1234567, %%r14" : : : "memory");
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
}
