// control: a product of split operands, which says that its inputs are to be finite
// expect: accepted
// problem: matmul
// warploom: kernel matmul grid=67 args=x,w,y
// warploom: special finite

extern "C" void matmul(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 61;
  auto* w = static_cast<const float*>(buffers[1]);
  auto* y = static_cast<float*>(buffers[2]) + row * 45;
  const auto high = [](float v) {
    unsigned bits;
    __builtin_memcpy(&bits, &v, 4);
    bits &= 0xfffff000u;
    __builtin_memcpy(&v, &bits, 4);
    return v;
  };
  for (int j = 0; j < 45; ++j) {
    float sums[4] = {};
    for (int k = 0; k < 61; ++k) {
      const float a = high(x[k]), b = high(w[k * 45 + j]);
      const float c = x[k] - a, d = w[k * 45 + j] - b;
      sums[k % 4] += a * b + (a * d + c * b + c * d);
    }
    y[j] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }
}
