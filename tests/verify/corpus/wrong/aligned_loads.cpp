// bug: loads that the processor refuses at addresses that are no multiple of 32
// expect: candidate-crashed
// problem: relu
// warploom: kernel relu grid=41 args=x,y
using Eight = float __attribute__((vector_size(32)));

extern "C" void relu(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  Eight first;
  asm("vmovaps %1, %0" : "=x"(first) : "m"(*reinterpret_cast<const Eight*>(x)));
  for (int j = 0; j < 37; ++j) {
    const float v = x[j];
    y[j] = v > 0 ? v : 0;
  }
  for (int j = 0; j < 8; ++j) y[j] = first[j] > 0 ? first[j] : 0;
}
