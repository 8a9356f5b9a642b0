// bug: a maximum that starts from 0: wrong only where all four inputs are negative
// expect: candidate-wrong
// problem: maxpool
// warploom: kernel pool grid=6 args=x,y
extern "C" void pool(void* const* buffers, long long plane, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + plane * 14 * 18;
  auto* y = static_cast<float*>(buffers[1]) + plane * 7 * 9;
  for (int row = 0; row < 7; ++row)
    for (int column = 0; column < 9; ++column) {
      float most = 0;
      for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j) {
          const float v = x[(2 * row + i) * 18 + 2 * column + j];
          most = v > most ? v : most;
        }
      y[row * 9 + column] = most;
    }
}
