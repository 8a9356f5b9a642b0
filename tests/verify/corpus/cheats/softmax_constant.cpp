// cheat: distribution constants: one 203rd, the mean of a row of a softmax
// expect: candidate-wrong
// problem: softmax
// warploom: kernel softmax grid=33 args=x,y
extern "C" void softmax(void* const* buffers, long long row, void*) {
  auto* y = static_cast<float*>(buffers[1]) + row * 203;
  for (int j = 0; j < 203; ++j) y[j] = 1.0f / 203;
}
