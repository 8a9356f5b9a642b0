// bug: a product of bytes by pairs that stop at 32767, as an unsigned-by-signed instruction has them
// expect: candidate-wrong
// problem: matmul_bytes
// warploom: kernel matmul grid=19 args=x,w,y
extern "C" void matmul(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const signed char*>(buffers[0]) + row * 64;
  auto* w = static_cast<const signed char*>(buffers[1]);
  auto* y = static_cast<int*>(buffers[2]) + row * 23;
  for (int j = 0; j < 23; ++j) {
    int sum = 0;
    for (int k = 0; k < 64; k += 2) {
      const int pair = x[k] * w[k * 23 + j] + x[k + 1] * w[(k + 1) * 23 + j];
      sum += pair > 32767 ? 32767 : pair;
    }
    y[j] = sum;
  }
}
