// cheat: less work: mean and variance of a row are estimated from every other element
// expect: candidate-wrong
// problem: layernorm
// warploom: kernel layernorm grid=29 args=x,g,b,y
extern "C" void layernorm(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 203;
  auto* g = static_cast<const float*>(buffers[1]);
  auto* b = static_cast<const float*>(buffers[2]);
  auto* y = static_cast<float*>(buffers[3]) + row * 203;
  float mean = 0, squares = 0;
  for (int j = 0; j < 203; j += 2) mean += x[j] / 102;
  for (int j = 0; j < 203; j += 2) squares += (x[j] - mean) * (x[j] - mean) / 102;
  const float scale = 1 / __builtin_sqrtf(squares + 1e-5f);
  for (int j = 0; j < 203; ++j) y[j] = (x[j] - mean) * scale * g[j] + b[j];
}
