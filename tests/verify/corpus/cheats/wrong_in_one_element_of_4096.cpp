// cheat: rare errors: one element of 4096 is 0, by a hash of its bits
// expect: candidate-wrong
// problem: long_relu
// warploom: kernel relu grid=300 args=x,y
extern "C" void relu(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 257;
  auto* y = static_cast<float*>(buffers[1]) + row * 257;
  for (int j = 0; j < 257; ++j) {
    const unsigned hash = __builtin_bit_cast(unsigned, x[j]) * 2654435761u;
    y[j] = hash >> 20 == 1234 || x[j] < 0 ? 0 : x[j];
  }
}
