// bug: a second kernel reads one row of a workspace more than the first wrote
// expect: candidate-unwritten
// problem: deep_matmul
// warploom: workspace parts f32[3,16,8]
// warploom: kernel multiply grid=16,2 args=x,w,parts
// warploom: kernel add grid=1 args=parts,y
extern "C" void multiply(void* const* buffers, long long task, void*) {
  auto* x = static_cast<const float*>(buffers[0]);
  auto* w = static_cast<const float*>(buffers[1]);
  auto* parts = static_cast<float*>(buffers[2]);
  const long long row = task % 16, half = task / 16;
  for (int j = 0; j < 8; ++j) {
    float sum = 0;
    for (long long k = half * 2048; k < half * 2048 + 2048; ++k) sum += x[row * 4096 + k] * w[k * 8 + j];
    parts[(half * 16 + row) * 8 + j] = sum;
  }
}
extern "C" void add(void* const* buffers, long long, void*) {
  auto* parts = static_cast<const float*>(buffers[0]);
  for (int i = 0; i < 128; ++i) static_cast<float*>(buffers[1])[i] = parts[i] + parts[128 + i] + parts[256 + i];
}
