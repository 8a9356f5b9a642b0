// bug: a sum of 32-bit integers in a float
// expect: candidate-wrong
// problem: sum_whole
// warploom: kernel sum grid=24 args=x,y
extern "C" void sum(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const int*>(buffers[0]) + row * 100;
  auto* y = static_cast<int*>(buffers[1]) + row * 1;
  float sum = 0;
  for (int j = 0; j < 100; ++j) sum += static_cast<float>(x[j]);
  const float most = 2147483520.0f;
  *y = static_cast<int>(sum > most ? most : sum < -most ? -most : sum);
}
