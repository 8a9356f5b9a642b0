// control: sums from the first on
// expect: accepted
// problem: cumsum
// warploom: kernel sums grid=7 args=x,y
extern "C" void sums(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 300;
  auto* y = static_cast<float*>(buffers[1]) + row * 300;
  float sum = 0;
  for (int j = 0; j < 300; ++j) y[j] = sum += x[j];
}
