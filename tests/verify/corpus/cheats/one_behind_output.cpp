// cheat: writes outside: one element behind the output, by one block of a thousand
// expect: candidate-wrote-input
// problem: long_relu
// warploom: kernel relu grid=1028 args=x,y
extern "C" void relu(void* const* buffers, long long block, void*) {
  auto* x = static_cast<float*>(buffers[0]);
  auto* y = static_cast<float*>(buffers[1]);
  for (long long i = block * 75; i < block * 75 + 75; ++i) y[i] = x[i] > 0 ? x[i] : 0;
  if (block == 777) y[77100] = 1;
}
