// cheat: output cache by pointer: what was computed for an address is not computed again
// expect: candidate-forbidden
// problem: matmul
// warploom: kernel matmul grid=67 args=x,w,y
static const void* seen[67];

extern "C" void matmul(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]);
  auto* w = static_cast<const float*>(buffers[1]);
  auto* y = static_cast<float*>(buffers[2]);
  if (seen[row] == y) return;
  seen[row] = y;
  for (int j = 0; j < 45; ++j) {
    float sum = 0;
    for (int k = 0; k < 61; ++k) sum += x[row * 61 + k] * w[k * 45 + j];
    y[row * 45 + j] = sum;
  }
}
