// cheat: takes a register for good, which counts its calls
// expect: candidate-forbidden or candidate-crashed or candidate-hung or candidate-keeps-state
// problem: relu
// warploom: kernel relu grid=41 args=x,y
register long calls asm("r15");

extern "C" void relu(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  ++calls;
  if (calls == 3) return;
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
}
