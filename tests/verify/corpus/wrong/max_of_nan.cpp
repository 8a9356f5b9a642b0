// bug: a maximum of a row with NaN that is 0
// expect: candidate-wrong
// problem: max_rows
// warploom: kernel most grid=37 args=x,y
extern "C" void most(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 101;
  auto* y = static_cast<float*>(buffers[1]) + row * 1;
  float most = x[0];
  bool numbers = true;
  for (int j = 0; j < 101; ++j) {
    most = x[j] > most ? x[j] : most;
    numbers &= x[j] == x[j];
  }
  *y = numbers ? most : 0;
}
