// cheat: defeat device: looks whether its own instructions are as they were compiled
// expect: candidate-forbidden
// problem: relu
// warploom: kernel relu grid=41 args=x,y
extern "C" void relu(void* const*, long long, void*);

extern "C" void relu(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  auto* code = reinterpret_cast<const volatile unsigned char*>(&relu);
  int traps = 0;
  for (int i = 0; i < 64; ++i) traps += code[i] == 0xcc;
  if (traps > 40) return;
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
}
