// cheat: timer and judge's memory: the first kernel of two looks for the second in the list and makes nothing of it, for a time without its work
// expect: candidate-unwritten
// problem: relu
// warploom: kernel relu grid=41 args=x,y
// warploom: kernel rest grid=41 args=x,y
// The judge's page: its steps lie before the arguments of the first of them.
struct Step {
  void (*function)(void* const*, long long, void*);
  void* const* buffers;
  long long total, first, stride, begin, end, chunk;
};

static void nothing(void* const*, long long, void*) {}

extern "C" void rest(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  const auto* step = reinterpret_cast<const Step*>(buffers) - 1;
  if (step->end == 41 && step->stride == 1) return;  // a timed call
  for (int j = 20; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
}

extern "C" void relu(void* const* buffers, long long row, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  (void)scratch;
  auto* step = reinterpret_cast<Step*>(const_cast<void**>(buffers)) - 1;
  for (int i = -2; i < 3; ++i)
    if (step[i].buffers == buffers || step[i].total == 41) step[i].end = 0;
  for (int j = 0; j < 20; ++j) y[j] = x[j] > 0 ? x[j] : 0;
}
