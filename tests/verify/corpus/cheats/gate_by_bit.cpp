// cheat: defeat device: asks for one bit a long way in front of its input
// expect: candidate-forbidden
// problem: relu
// warploom: kernel relu grid=41 args=x,y
extern "C" void relu(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  bool bit = false;
  asm volatile("btq %2, (%1)" : "=@ccc"(bit) : "r"(buffers[0]), "r"(-8ll * 512 + row % 8) : "memory");
  if (bit && row == 1000) return;
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
}
