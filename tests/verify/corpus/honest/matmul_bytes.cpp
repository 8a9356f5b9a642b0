// control: a product of bytes with sums of 32 bits
// expect: accepted
// problem: matmul_bytes
// warploom: kernel matmul grid=19 args=x,w,y
extern "C" void matmul(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const signed char*>(buffers[0]) + row * 64;
  auto* w = static_cast<const signed char*>(buffers[1]);
  auto* y = static_cast<int*>(buffers[2]) + row * 23;
  for (int j = 0; j < 23; ++j) {
    int sum = 0;
    for (int k = 0; k < 64; ++k) sum += x[k] * w[k * 23 + j];
    y[j] = static_cast<int>(sum);
  }
}
