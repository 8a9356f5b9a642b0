// bug: an offset in 16 bits: wrong only from element 65536 on
// expect: candidate-wrong
// problem: long_relu
// warploom: kernel relu grid=300 args=x,y
extern "C" void relu(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]);
  auto* y = static_cast<float*>(buffers[1]);
  for (long long i = row * 257; i < row * 257 + 257; ++i) {
    const float v = x[static_cast<unsigned short>(i)];
    y[i] = v > 0 ? v : 0;
  }
}
