// cheat: writes to an input what it writes to its output, and puts the input back
// expect: candidate-wrote-input
// problem: relu
// warploom: kernel relu grid=41 args=x,y
extern "C" void relu(void* const* buffers, long long row, void*) {
  auto* x = static_cast<volatile float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  for (int j = 0; j < 37; ++j) {
    const float kept = x[j];
    x[j] = kept > 0 ? kept : 0;
    y[j] = x[j];
    x[j] = kept;
  }
}
