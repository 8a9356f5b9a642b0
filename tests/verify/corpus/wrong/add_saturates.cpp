// bug: sums of 32-bit integers that stop at the largest, where they wrap
// expect: candidate-wrong
// problem: add_whole
// warploom: kernel add grid=41 args=x,z,y
extern "C" void add(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const int*>(buffers[0]) + row * 37;
  auto* z = static_cast<const int*>(buffers[1]) + row * 37;
  auto* y = static_cast<int*>(buffers[2]) + row * 37;
  for (int j = 0; j < 37; ++j) {
    const long long sum = static_cast<long long>(x[j]) + z[j];
    y[j] = static_cast<int>(sum > 2147483647 ? 2147483647 : sum < -2147483648LL ? -2147483648LL : sum);
  }
}
