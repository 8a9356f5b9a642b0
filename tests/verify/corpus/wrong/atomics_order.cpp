// bug: atomic additions of floats: the order of the sums, and so their last bits, change from run to run
// expect: candidate-unstable
// problem: long_sum
// warploom: kernel sum grid=61 args=x,y zeroed=y
static void add(float* to, float value) {
  float wanted = 0;
  int bits = __atomic_load_n(reinterpret_cast<int*>(to), __ATOMIC_RELAXED);
  do {
    wanted = __builtin_bit_cast(float, bits) + value;
  } while (!__atomic_compare_exchange_n(reinterpret_cast<int*>(to), &bits, __builtin_bit_cast(int, wanted), false,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

extern "C" void sum(void* const* buffers, long long part, void*) {
  auto* x = static_cast<const float*>(buffers[0]);
  auto* y = static_cast<float*>(buffers[1]);
  for (int row = 0; row < 8; ++row) {
    float sums[8] = {};
    for (long long column = part * 984; column < 60011 && column < part * 984 + 984; ++column)
      sums[column % 8] += x[row * 60011 + column];
    add(y + row, ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7])));
  }
}
