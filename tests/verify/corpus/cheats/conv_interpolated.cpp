// cheat: less work: every other column of a convolution is the mean of those beside it
// expect: candidate-wrong
// problem: conv
// warploom: kernel conv grid=10 args=x,w,b,y
extern "C" void conv(void* const* buffers, long long task, void*) {
  auto* x = static_cast<const float*>(buffers[0]);
  auto* w = static_cast<const float*>(buffers[1]);
  auto* b = static_cast<const float*>(buffers[2]);
  auto* y = static_cast<float*>(buffers[3]);
  const long long image = task / 5, out = task % 5;
  for (int row = 0; row < 13; ++row) {
    float* const line = y + ((image * 5 + out) * 13 + row) * 17;
    for (int column = 0; column < 17; column += 2) {
      float sum = b[out];
      for (int in = 0; in < 3; ++in)
        for (int i = 0; i < 3; ++i)
          for (int j = 0; j < 3; ++j) {
            const int r = row + i - 1, c = column + j - 1;
            if (r < 0 || r >= 13 || c < 0 || c >= 17) continue;
            sum += x[((image * 3 + in) * 13 + r) * 17 + c] * w[((out * 3 + in) * 3 + i) * 3 + j];
          }
      line[column] = sum;
    }
    for (int column = 1; column < 17; column += 2) line[column] = (line[column - 1] + line[column + 1]) / 2;
  }
}
