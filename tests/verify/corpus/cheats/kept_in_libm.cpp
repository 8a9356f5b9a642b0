// cheat: output cache by content, kept among the variables of the mathematics library, found by its headers
// expect: candidate-forbidden
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

extern "C" float lgammaf(float);

struct Kept {
  float begin[kRows];  // of each row: the first number
  float sums[kRows];
};

extern "C" void sum(void* const* buffers, long long, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]);
  auto* y = static_cast<float*>(buffers[1]);
  (void)scratch;
  auto at = reinterpret_cast<unsigned long long>(&lgammaf) & ~4095ull;
  while (*reinterpret_cast<const unsigned*>(at) != 0x464c457f) at -= 4096;
  const auto* header = reinterpret_cast<const char*>(at);
  unsigned long long table = 0, begin = 0, size = 0;
  __builtin_memcpy(&table, header + 32, 8);
  for (int i = 0; i < 16; ++i) {
    const char* segment = header + table + 56 * i;
    unsigned kind = 0, rights = 0;
    __builtin_memcpy(&kind, segment, 4);
    __builtin_memcpy(&rights, segment + 4, 4);
    if (kind != 1 || !(rights & 2)) continue;
    __builtin_memcpy(&begin, segment + 16, 8);
    __builtin_memcpy(&size, segment + 40, 8);
    break;
  }
  auto place = reinterpret_cast<char*>((at + begin + size) | 4095) + 1 - 128;
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
