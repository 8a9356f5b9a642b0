// bug: a softmax by the exponent bits of a float: three per cent off
// expect: candidate-wrong
// problem: softmax
// warploom: kernel softmax grid=33 args=x,y
static float power(float v) { return v < -80 ? 0 : __builtin_bit_cast(float, static_cast<int>(12102203.0f * v) + 1064866805); }

extern "C" void softmax(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 203;
  auto* y = static_cast<float*>(buffers[1]) + row * 203;
  float most = x[0], sum = 0;
  for (int j = 1; j < 203; ++j) most = x[j] > most ? x[j] : most;
  for (int j = 0; j < 203; ++j) sum += y[j] = power(x[j] - most);
  for (int j = 0; j < 203; ++j) y[j] /= sum;
}
