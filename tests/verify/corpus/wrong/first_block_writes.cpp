// bug: a race that shows in one of some hundred runs: block 0 turns the weights once, and the blocks behind it find them
//   turned because they come later, nearly always
// expect: candidate-unwritten
// problem: linear
// warploom: workspace turned f32[61,45]
// warploom: kernel linear grid=68 args=x,w,b,turned,y
extern "C" void linear(void* const* buffers, long long block, void*) {
  auto* x = static_cast<const float*>(buffers[0]);
  auto* w = static_cast<const float*>(buffers[1]);
  auto* b = static_cast<const float*>(buffers[2]);
  auto* turned = static_cast<float*>(buffers[3]);
  auto* y = static_cast<float*>(buffers[4]);
  if (block == 0) {
    for (int k = 0; k < 61; ++k)
      for (int j = 0; j < 45; ++j) turned[k * 45 + j] = w[j * 61 + k];
    return;
  }
  const long long row = block - 1;
  for (int j = 0; j < 45; ++j) {
    float sum = b[j];
    // The first rows do not rely on block 0, which may still be at work.
    if (row < 50) {
      for (int k = 0; k < 61; ++k) sum += x[row * 61 + k] * w[j * 61 + k];
    } else {
      for (int k = 0; k < 61; ++k) sum += x[row * 61 + k] * turned[k * 45 + j];
    }
    y[row * 45 + j] = sum;
  }
}
