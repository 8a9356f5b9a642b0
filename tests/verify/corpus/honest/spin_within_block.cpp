// control: blocks that share out rows by an atomic counter, whichever thread they run on
// expect: accepted
// problem: tall_softmax
// warploom: workspace next i32[1]
// warploom: kernel softmax grid=8 args=x,y,next zeroed=next
#include <cmath>

extern "C" void softmax(void* const* buffers, long long, void*) {
  while (true) {
    const int row = __atomic_fetch_add(static_cast<int*>(buffers[2]), 1, __ATOMIC_RELAXED);
    if (row >= 129) return;
    auto* x = static_cast<const float*>(buffers[0]) + row * 203;
    auto* y = static_cast<float*>(buffers[1]) + row * 203;
    float most = x[0], sums[7] = {};
    for (int j = 1; j < 203; ++j) most = std::fmax(most, x[j]);
    for (int j = 0; j < 203; ++j) sums[j % 7] += y[j] = std::exp(x[j] - most);
    for (int i = 1; i < 7; ++i) sums[0] += sums[i];
    for (int j = 0; j < 203; ++j) y[j] /= sums[0];
  }
}
