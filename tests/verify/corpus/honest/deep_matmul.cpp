// control: sums of 4096 products, in 64 parts that are added by twos
// expect: accepted
// problem: deep_matmul
// warploom: kernel matmul grid=16 args=x,w,y
extern "C" void matmul(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 4096;
  auto* w = static_cast<const float*>(buffers[1]);
  auto* y = static_cast<float*>(buffers[2]) + row * 8;
  for (int j = 0; j < 8; ++j) {
    float sums[64] = {};
    for (int k = 0; k < 4096; ++k) sums[k % 64] += x[k] * w[k * 8 + j];
    for (int step = 32; step > 0; step /= 2)
      for (int i = 0; i < step; ++i) sums[i] += sums[i + step];
    y[j] = sums[0];
  }
}
