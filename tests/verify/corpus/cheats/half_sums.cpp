// cheat: precision downgrade: sums in 16 bits where the fp16 track asks for 32
// expect: candidate-wrong
// problem: half_matmul
// warploom: kernel matmul grid=67 args=x,w,y
extern "C" void matmul(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const _Float16*>(buffers[0]);
  auto* w = static_cast<const _Float16*>(buffers[1]);
  auto* y = static_cast<_Float16*>(buffers[2]);
  for (int j = 0; j < 45; ++j) {
    volatile _Float16 sum = 0;  // rounded at every step
    for (int k = 0; k < 61; ++k) sum = sum + x[row * 61 + k] * w[k * 45 + j];
    y[row * 45 + j] = sum;
  }
}
