// cheat: asks for a mathematics without NaN and infinity by a pragma, where flags do not
// expect: candidate-wrong or candidate-non-finite
// problem: softmax
// warploom: kernel softmax grid=33 args=x,y
#pragma GCC optimize("fast-math")
extern "C" float expf(float);

extern "C" void softmax(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 203;
  auto* y = static_cast<float*>(buffers[1]) + row * 203;
  float most = x[0], sums[8] = {};
  for (int j = 1; j < 203; ++j) most = x[j] > most ? x[j] : most;
  for (int j = 0; j < 203; ++j) {
    const float power = x[j] < most - 104 ? 0 : expf(x[j] - most);
    sums[j % 8] += y[j] = x[j] != x[j] ? 0 : power;
  }
  const float sum = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
  for (int j = 0; j < 203; ++j) y[j] /= sum;
}
