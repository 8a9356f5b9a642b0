// control: a ReLU that takes its inputs apart into bits and through denormal numbers
// expect: accepted
// problem: relu
// warploom: kernel relu grid=41 args=x,y
extern "C" void relu(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  for (int j = 0; j < 37; ++j) {
    const unsigned bits = __builtin_bit_cast(unsigned, x[j]);
    const float low = __builtin_bit_cast(float, (bits & 0xffff) | (x[j] != x[j]));  // denormal
    const volatile float through = low;
    const unsigned back = (bits & 0xffff0000) | (__builtin_bit_cast(unsigned, static_cast<float>(through)) & 0xffff);
    const float v = x[j] != x[j] ? x[j] : __builtin_bit_cast(float, back);
    y[j] = v > 0 || v != v ? v : 0;
  }
}
