// bug: the last of equal maxima, where the first is asked for
// expect: candidate-wrong
// problem: argmax
// warploom: kernel argmax grid=23 args=x,y
extern "C" void argmax(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 101;
  auto* y = static_cast<long long*>(buffers[1]) + row * 1;
  int best = 0;
  for (int j = 1; j < 101; ++j)
    if (x[j] >= x[best]) best = j;
  *y = best;
}
