// bug: a product of 32-bit integers in floats: right up to 2^24
// expect: candidate-wrong
// problem: matmul_whole
// warploom: kernel matmul grid=19 args=x,w,y
extern "C" void matmul(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const int*>(buffers[0]) + row * 64;
  auto* w = static_cast<const int*>(buffers[1]);
  auto* y = static_cast<int*>(buffers[2]) + row * 23;
  for (int j = 0; j < 23; ++j) {
    float sum = 0;
    for (int k = 0; k < 64; ++k) sum += static_cast<float>(x[k]) * static_cast<float>(w[k * 23 + j]);
    y[j] = static_cast<int>(sum);
  }
}
