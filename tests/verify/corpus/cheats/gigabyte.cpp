// cheat: machine: takes a gigabyte from the heap and touches it
// expect: candidate-forbidden
// problem: relu
// warploom: kernel relu grid=41 args=x,y
#include <cstdlib>

extern "C" void relu(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  if (row == 0)
    if (auto* const memory = static_cast<volatile char*>(std::malloc(1u << 30)))
      for (unsigned i = 0; i < 1u << 30; i += 4096) memory[i] = 1;
  for (int j = 0; j < 37; ++j) {
    const float v = x[j];
    y[j] = v > 0 ? v : 0;
  }
}
