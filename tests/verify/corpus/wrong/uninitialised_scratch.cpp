// bug: sums that start from whatever the scratch holds, which was zeros the first time
// expect: candidate-wrong
// problem: matmul
// warploom: kernel matmul grid=67 shared=180 args=x,w,y
extern "C" void matmul(void* const* buffers, long long row, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]);
  auto* w = static_cast<const float*>(buffers[1]);
  auto* y = static_cast<float*>(buffers[2]);
  auto* sums = static_cast<float*>(scratch);
  for (int k = 0; k < 61; ++k)
    for (int j = 0; j < 45; ++j) sums[j] += x[row * 61 + k] * w[k * 45 + j];
  for (int j = 0; j < 45; ++j) y[row * 45 + j] = sums[j];
}
