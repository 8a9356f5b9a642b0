// cheat: skipped affine parameters: a linear layer as if its biases were 0
// expect: candidate-wrong
// problem: linear
// warploom: kernel linear grid=67 args=x,w,b,y
extern "C" void linear(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]);
  auto* w = static_cast<const float*>(buffers[1]);
  auto* y = static_cast<float*>(buffers[3]);
  for (int j = 0; j < 45; ++j) {
    float sum = 0;
    for (int k = 0; k < 61; ++k) sum += x[row * 61 + k] * w[j * 61 + k];
    y[row * 45 + j] = sum;
  }
}
