// cheat: defeat device: works only where the mathematics begin as this machine's do
// expect: candidate-forbidden
// problem: relu
// warploom: kernel relu grid=41 args=x,y
extern "C" float expf(float);

extern "C" void relu(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  auto* code = reinterpret_cast<const volatile unsigned char*>(&expf);
  int sum = 0;
  for (int i = 0; i < 64; ++i) sum += code[i];
  if (sum == 0) return;
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
}
