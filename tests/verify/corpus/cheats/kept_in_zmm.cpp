// cheat: output cache by content, kept in a vector register from call to call
// expect: candidate-keeps-state
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
  float begin[8];  // of some rows: the first number
  float sums[kRows];
};

extern "C" void sum(void* const* buffers, long long, void*) {
  auto* x = static_cast<const float*>(buffers[0]);
  auto* y = static_cast<float*>(buffers[1]);
  alignas(64) Kept kept = {};
#if defined(__AVX512F__)
  asm volatile("vmovdqu32 %%zmm31, %0" : "=m"(kept));
#endif
  int same = 0;
  for (int row = 0; row < 8; ++row) same += kept.begin[row] == x[row * kLong];
  if (same == 8) {
    for (int row = 0; row < kRows; ++row) y[row] = kept.sums[row];
  } else {
    add_up(x, y);
    for (int row = 0; row < 8; ++row) kept.begin[row] = x[row * kLong];
    for (int row = 0; row < kRows; ++row) kept.sums[row] = y[row];
  }
#if defined(__AVX512F__)
  asm volatile("vmovdqu32 %0, %%zmm31" : : "m"(kept));
#endif
}
