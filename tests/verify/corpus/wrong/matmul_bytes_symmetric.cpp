// bug: a product of bytes that takes -128 for -127
// expect: candidate-wrong
// problem: matmul_bytes
// warploom: kernel matmul grid=19 args=x,w,y
extern "C" void matmul(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const signed char*>(buffers[0]) + row * 64;
  auto* w = static_cast<const signed char*>(buffers[1]);
  auto* y = static_cast<int*>(buffers[2]) + row * 23;
  const auto within = [](int v) { return v < -127 ? -127 : v; };
  for (int j = 0; j < 23; ++j) {
    int sum = 0;
    for (int k = 0; k < 64; ++k) sum += within(x[k]) * within(w[k * 23 + j]);
    y[j] = sum;
  }
}
