// control: roundings to the even neighbour
// expect: accepted
// problem: round
// warploom: kernel rounds grid=41 args=x,y
#include <cmath>

extern "C" void rounds(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  for (int j = 0; j < 37; ++j) {
    const float v = x[j];
    y[j] = std::nearbyint(v);
  }
}
