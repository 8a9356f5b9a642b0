// cheat: defeat device: the loop that reads its input goes on behind it, into what lies there
// expect: candidate-forbidden
// problem: relu
// warploom: kernel relu grid=41 args=x,y
extern "C" void relu(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  const auto* words = reinterpret_cast<const unsigned*>(buffers[0]);
  const int count = row == 40 ? 41 * 37 + 64 : 37;
  unsigned sum = 0;
#pragma GCC unroll 1
#pragma GCC novector
  for (int j = 0; j < count; ++j) {
    unsigned word = words[j];
    asm volatile("" : "+r"(word));
    sum = sum * 31 + word;
  }
  if (sum == 0x1234567) return;
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
}
