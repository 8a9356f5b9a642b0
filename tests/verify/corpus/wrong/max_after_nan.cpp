// bug: a maximum that begins anew behind a NaN
// expect: candidate-wrong
// problem: max_rows
// warploom: kernel most grid=37 args=x,y
extern "C" void most(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 101;
  auto* y = static_cast<float*>(buffers[1]) + row * 1;
  float most = x[0];
  for (int j = 1; j < 101; ++j) most = most > x[j] ? most : x[j];
  *y = most;
}
