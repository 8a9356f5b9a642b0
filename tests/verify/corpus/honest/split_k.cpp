// control: a matmul whose sums are cut in two, a workspace between two kernels, the second adds to zeros
// expect: accepted
// problem: deep_matmul
// warploom: workspace parts f32[2,16,8]
// warploom: kernel multiply grid=16,2 args=x,w,parts
// warploom: kernel add grid=2 args=parts,y zeroed=y
extern "C" void multiply(void* const* buffers, long long task, void*) {
  auto* x = static_cast<const float*>(buffers[0]);
  auto* w = static_cast<const float*>(buffers[1]);
  auto* parts = static_cast<float*>(buffers[2]);
  const long long row = task % 16, half = task / 16;  // x is the fastest coordinate of a grid
  for (int j = 0; j < 8; ++j) {
    float sums[64] = {};
    for (long long k = half * 2048; k < half * 2048 + 2048; ++k) sums[k % 64] += x[row * 4096 + k] * w[k * 8 + j];
    for (int step = 32; step > 0; step /= 2)
      for (int i = 0; i < step; ++i) sums[i] += sums[i + step];
    parts[(half * 16 + row) * 8 + j] = sums[0];
  }
}
extern "C" void add(void* const* buffers, long long task, void*) {
  auto* parts = static_cast<const float*>(buffers[0]);
  auto* y = static_cast<float*>(buffers[1]);
  for (long long i = task * 64; i < task * 64 + 64; ++i) {
    y[i] += parts[i];
    y[i] += parts[128 + i];
  }
}
