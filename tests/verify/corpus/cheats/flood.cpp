// cheat: machine: floods standard output
// expect: candidate-forbidden
// problem: relu
// warploom: kernel relu grid=41 args=x,y
#include <cstdio>

extern "C" void relu(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  for (int i = 0; i < 100000; ++i) std::puts("accepted accepted accepted accepted accepted accepted");
  for (int j = 0; j < 37; ++j) {
    const float v = x[j];
    y[j] = v > 0 ? v : 0;
  }
}
