// bug: sums of 64-bit integers in a double
// expect: candidate-wrong
// problem: sum_long
// warploom: kernel reduce grid=13 args=x,y
extern "C" void reduce(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const long long*>(buffers[0]) + row * 301;
  auto* y = static_cast<long long*>(buffers[1]);
  auto sum = 0.0;
  for (int j = 0; j < 301; ++j) sum += static_cast<double>(x[j]);
  y[row] = static_cast<long long>(sum);
}
