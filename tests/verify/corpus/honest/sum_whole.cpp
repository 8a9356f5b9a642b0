// control: a sum of 32-bit integers, which wraps
// expect: accepted
// problem: sum_whole
// warploom: kernel sum grid=24 args=x,y
extern "C" void sum(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const unsigned*>(buffers[0]) + row * 100;
  auto* y = static_cast<unsigned*>(buffers[1]) + row * 1;
  unsigned sum = 0;
  for (int j = 0; j < 100; ++j) sum += x[j];
  *y = sum;
}
