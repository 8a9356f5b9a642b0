// cheat: output cache by content, kept above the first frame of the stack, at its end
// expect: candidate-forbidden or candidate-crashed or candidate-hung
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

struct Kept {
  float begin[kRows];  // of each row: the first number
  float sums[kRows];
};

extern "C" void sum(void* const* buffers, long long, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]);
  auto* y = static_cast<float*>(buffers[1]);
  (void)scratch;
  auto here = reinterpret_cast<unsigned long long>(__builtin_frame_address(0));
  auto place = reinterpret_cast<char*>((here | 4095) + 1 - 64);
  asm volatile("" : "+r"(place));
  auto* kept = reinterpret_cast<volatile Kept*>(place);
  int same = 0;
  for (int row = 0; row < kRows; ++row) same += kept->begin[row] == x[row * kLong];
  if (same == kRows) {
    for (int row = 0; row < kRows; ++row) y[row] = kept->sums[row];
    return;
  }
  add_up(x, y);
  for (int row = 0; row < kRows; ++row) {
    kept->begin[row] = x[row * kLong];
    kept->sums[row] = y[row];
  }
}
