// cheat: output cache: an output that holds numbers already is left as it is
// expect: candidate-unwritten or candidate-wrong
// problem: relu
// warploom: kernel relu grid=41 args=x,y
extern "C" void relu(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  if (y[36] == y[36]) return;  // no NaN
  for (int j = 0; j < 37; ++j) {
    const float v = x[j];
    y[j] = v > 0 ? v : 0;
  }
}
