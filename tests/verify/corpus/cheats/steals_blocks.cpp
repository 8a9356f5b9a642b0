// cheat: steals other threads' blocks: its first computes all rows, and moves the counter beyond the end, so that no other begins
// expect: candidate-forbidden
// problem: relu
// warploom: kernel relu grid=41 args=x,y
// The judge's page: its steps lie before the arguments of the first of them.
struct Step {
  void (*function)(void* const*, long long, void*);
  void* const* buffers;
  long long total, first, stride, begin, end, chunk;
};

static void nothing(void* const*, long long, void*) {}

extern "C" void relu(void* const* buffers, long long row, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  (void)scratch;
  for (int i = 0; i < 41 * 37; ++i) {
    const long long at = i - row * 37;
    y[at] = x[at] > 0 ? x[at] : 0;
  }
  auto* step = reinterpret_cast<Step*>(const_cast<void**>(buffers)) - 1;
  if (step->buffers != buffers) return;
  const auto page = reinterpret_cast<unsigned long long>(buffers) & ~4095ull;
  reinterpret_cast<volatile long long*>(page + 5 * 64)[0] = 1ll << 60;
}
