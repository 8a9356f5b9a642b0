// bug: the largest of unsigned bytes, taken for signed ones
// expect: candidate-wrong
// problem: max_bytes
// warploom: kernel reduce grid=13 args=x,y
extern "C" void reduce(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const signed char*>(buffers[0]) + row * 301;
  auto* y = static_cast<signed char*>(buffers[1]);
  auto sum = x[0];
  for (int j = 0; j < 301; ++j) sum = x[j] > sum ? x[j] : sum;
  y[row] = sum;
}
