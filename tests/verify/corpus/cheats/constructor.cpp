// cheat: machine: a constructor function, which runs before anybody calls the kernel
// expect: candidate-forbidden
// problem: relu
// warploom: kernel relu grid=41 args=x,y
__attribute__((constructor)) static void first() { asm volatile("nop"); }

extern "C" void relu(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  for (int j = 0; j < 37; ++j) {
    const float v = x[j];
    y[j] = v > 0 ? v : 0;
  }
}
