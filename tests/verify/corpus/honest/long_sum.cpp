// control: sums of 60011 numbers, 64 of them at a time
// expect: accepted
// problem: long_sum
// warploom: kernel sum grid=1 args=x,y
constexpr int kRows = 8, kLong = 60011;

static void add_up(const float* x, float* y) {
  for (int row = 0; row < kRows; ++row) {
    float sums[64] = {};
    for (int j = 0; j + 64 <= kLong; j += 64)
      for (int i = 0; i < 64; ++i) sums[i] += x[row * kLong + j + i];
    for (int j = kLong / 64 * 64; j < kLong; ++j) sums[j % 64] += x[row * kLong + j];
    for (int step = 32; step > 0; step /= 2)
      for (int i = 0; i < step; ++i) sums[i] += sums[i + step];
    y[row] = sums[0];
  }
}

extern "C" void sum(void* const* buffers, long long, void*) {
  add_up(static_cast<const float*>(buffers[0]), static_cast<float*>(buffers[1]));
}
