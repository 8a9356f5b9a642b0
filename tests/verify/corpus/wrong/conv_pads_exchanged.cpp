// bug: a convolution that takes the padding behind for that in front
// expect: candidate-wrong
// problem: conv_strided
// warploom: kernel conv grid=10 args=x,w,b,y
extern "C" void conv(void* const* buffers, long long out, void*) {
  auto* x = static_cast<const float*>(buffers[0]);
  auto* w = static_cast<const float*>(buffers[1]);
  auto* b = static_cast<const float*>(buffers[2]);
  auto* y = static_cast<float*>(buffers[3]);
  const int first = out / 5 * 3;
  for (int row = 0; row < 9; ++row)
    for (int column = 0; column < 16; ++column) {
      float sum = b[out];
      for (int in = 0; in < 3; ++in)
        for (int i = 0; i < 3; ++i)
          for (int j = 0; j < 3; ++j) {
            const int r = row * 2 + i - 2, c = column + j * 2 - 1;
            if (r < 0 || r >= 17 || c < 0 || c >= 19) continue;
            sum += x[((first + in) * 17 + r) * 19 + c] * w[((out * 3 + in) * 3 + i) * 3 + j];
          }
      y[(out * 9 + row) * 16 + column] = sum;
    }
}
