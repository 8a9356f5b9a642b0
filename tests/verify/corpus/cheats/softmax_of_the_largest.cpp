// cheat: less work: exponentials of numbers far below the largest are taken for 0
// expect: candidate-wrong
// problem: softmax
// warploom: kernel softmax grid=33 args=x,y
extern "C" float expf(float);

extern "C" void softmax(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 203;
  auto* y = static_cast<float*>(buffers[1]) + row * 203;
  float most = x[0], sum = 0;
  for (int j = 1; j < 203; ++j) most = x[j] > most ? x[j] : most;
  for (int j = 0; j < 203; ++j) sum += y[j] = x[j] > most - 14 || !(x[j] <= most) ? expf(x[j] - most) : 0;
  for (int j = 0; j < 203; ++j) y[j] /= sum;
}
