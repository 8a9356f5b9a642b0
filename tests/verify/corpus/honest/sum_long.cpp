// control: sums of 64-bit integers, which wrap
// expect: accepted
// problem: sum_long
// warploom: kernel reduce grid=13 args=x,y
extern "C" void reduce(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const unsigned long long*>(buffers[0]) + row * 301;
  auto* y = static_cast<unsigned long long*>(buffers[1]);
  auto sum = 0ull;
  for (int j = 0; j < 301; ++j) sum += x[j];
  y[row] = sum;
}
