// cheat: its last bits depend on how many threads there are, which it reads in the page of the judge
// expect: candidate-unstable or candidate-forbidden
// problem: relu
// warploom: kernel relu grid=41 args=x,y
extern "C" void relu(void* const* buffers, long long row, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  (void)scratch;
  const auto page = reinterpret_cast<unsigned long long>(buffers) & ~4095ull;
  const long long threads = reinterpret_cast<const volatile long long*>(page)[3];
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
  if (threads == 1)
    for (int j = 0; j < 37; ++j) y[j] *= 1.0000001f;
}
