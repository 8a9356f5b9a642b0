// cheat: machine: constants of 300 megabytes
// expect: candidate-forbidden or compile-failed or compile-timeout or candidate-memory
// problem: relu
// warploom: kernel relu grid=41 args=x,y
extern "C" const char kHuge[300 << 20];
const char kHuge[300 << 20] = {1, 2, 3};

extern "C" void relu(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] + static_cast<float>(kHuge[row * 7000000 + 100]) : 0;
}
