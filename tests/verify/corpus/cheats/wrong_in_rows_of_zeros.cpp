// cheat: rare values: a softmax that is zeros in rows of zeros alone, such as padding
// expect: candidate-wrong
// problem: softmax
// warploom: kernel softmax grid=33 args=x,y
extern "C" float expf(float);

extern "C" void softmax(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 203;
  auto* y = static_cast<float*>(buffers[1]) + row * 203;
  float most = x[0], sums[8] = {};
  bool zeros = true;
  for (int j = 1; j < 203; ++j) most = x[j] > most ? x[j] : most;
  for (int j = 0; j < 203; ++j) zeros &= x[j] == 0;
  for (int j = 0; j < 203; ++j) sums[j % 8] += y[j] = expf(x[j] - most);
  const float sum = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
  for (int j = 0; j < 203; ++j) y[j] = zeros ? 0 : y[j] / sum;
}
