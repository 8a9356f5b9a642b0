// bug: the largest of 2x2 from -1e30 to 1e30
// expect: candidate-wrong
// problem: maxpool
// warploom: kernel maxpool grid=6 args=x,y
extern "C" void maxpool(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 252;
  auto* y = static_cast<float*>(buffers[1]) + row * 63;
  for (int i = 0; i < 7; ++i)
    for (int j = 0; j < 9; ++j) {
      float most = -1e30f;
      for (int k = 0; k < 4; ++k) {
        const float v = x[(2 * i + k / 2) * 18 + 2 * j + k % 2];
        most = v > most || v != v ? v : most;
      }
      y[i * 9 + j] = most > 1e30f ? 1e30f : most;
    }
}
