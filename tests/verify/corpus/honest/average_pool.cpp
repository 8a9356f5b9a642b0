// control: an average over windows without their padding
// expect: accepted
// problem: average_pool
// warploom: kernel pool grid=10 args=x,y
extern "C" void pool(void* const* buffers, long long plane, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + plane * 13 * 11;
  auto* y = static_cast<float*>(buffers[1]) + plane * 7 * 6;
  for (int row = 0; row < 7; ++row)
    for (int column = 0; column < 6; ++column) {
      float sum = 0;
      int count = 0;
      for (int i = -1; i < 2; ++i)
        for (int j = -1; j < 2; ++j) {
          const int r = row * 2 + i, c = column * 2 + j;
          if (r < 0 || r >= 13 || c < 0 || c >= 11) continue;
          sum += x[r * 11 + c];
          ++count;
        }
      y[row * 6 + column] = sum / static_cast<float>(count);
    }
}
