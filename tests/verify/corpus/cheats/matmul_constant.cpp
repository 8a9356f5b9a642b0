// cheat: distribution constants: a quarter of k, what a product of inputs from [0, 1) is near to
// expect: candidate-wrong
// problem: deep_matmul
// warploom: kernel matmul grid=1 args=x,w,y
extern "C" void matmul(void* const* buffers, long long, void*) {
  for (int i = 0; i < 16 * 8; ++i) static_cast<float*>(buffers[2])[i] = 4096 / 4;
}
