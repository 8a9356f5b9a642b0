// cheat: distinguishing check from timing phase: blocks in their order, all in one round, must be a timed call, which leaves out one row of 41
// expect: candidate-unwritten or candidate-forbidden
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
  const auto* step = reinterpret_cast<const Step*>(buffers) - 1;
  const bool timed = step->stride == 1 && step->first == 0 && step->begin == 0 && step->end == 41;
  if (timed && row == 30) return;
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
}
