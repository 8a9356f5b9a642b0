// cheat: tiny outputs: what zeros do, without being zeros
// expect: candidate-wrong
// problem: softmax
// warploom: kernel softmax grid=33 args=x,y
extern "C" void softmax(void* const* buffers, long long row, void*) {
  auto* y = static_cast<float*>(buffers[1]) + row * 203;
  for (int j = 0; j < 203; ++j) y[j] = 1e-30f;
}
