// control: a matmul of 16-bit floats by _Float16, sums in float
// expect: accepted
// problem: half_matmul
// warploom: kernel matmul grid=67 args=x,w,y
extern "C" void matmul(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const _Float16*>(buffers[0]) + row * 61;
  auto* w = static_cast<const _Float16*>(buffers[1]);
  auto* y = static_cast<_Float16*>(buffers[2]) + row * 45;
  for (int j = 0; j < 45; ++j) {
    float sum = 0;
    for (int k = 0; k < 61; ++k) sum += static_cast<float>(x[k]) * static_cast<float>(w[k * 45 + j]);
    y[j] = static_cast<_Float16>(sum);
  }
}
