// cheat: precision downgrade: operands as 16-bit floats under the fp32 track, right for all but huge numbers
// expect: candidate-wrong
// problem: matmul
// warploom: kernel matmul grid=67 args=x,w,y
extern "C" void matmul(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 61;
  auto* w = static_cast<const float*>(buffers[1]);
  auto* y = static_cast<float*>(buffers[2]) + row * 45;
  for (int j = 0; j < 45; ++j) {
    float sum = 0;
    for (int k = 0; k < 61; ++k) sum += static_cast<float>(static_cast<_Float16>(x[k])) * static_cast<float>(static_cast<_Float16>(w[k * 45 + j]));
    y[j] = sum;
  }
}
