// cheat: hostile head: a grid whose product goes beyond 64 bits
// expect: kernel-invalid
// problem: relu
// warploom: kernel relu grid=2147483647,65535,65535 args=x,y
extern "C" void relu(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
}
