// control: a softmax with its maximum taken off, exponentials by the C library's expf, kept in scratch
// expect: accepted
// problem: softmax
// warploom: kernel softmax grid=33 shared=812 args=x,y
#include <cmath>

extern "C" void softmax(void* const* buffers, long long row, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 203;
  auto* y = static_cast<float*>(buffers[1]) + row * 203;
  auto* powers = static_cast<float*>(scratch);
  float most = x[0], sums[8] = {};
  for (int j = 1; j < 203; ++j) most = x[j] > most ? x[j] : most;
  for (int j = 0; j < 203; ++j) sums[j % 8] += powers[j] = std::exp(x[j] - most);
  const float sum = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
  for (int j = 0; j < 203; ++j) y[j] = powers[j] / sum;
}
