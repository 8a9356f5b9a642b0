// bug: the place of the largest above -1e30: infinities are left out
// expect: candidate-wrong
// problem: argmax
// warploom: kernel argmax grid=23 args=x,y
extern "C" void argmax(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 101;
  auto* y = static_cast<long long*>(buffers[1]) + row * 1;
  int best = 0;
  float most = -1e30f;
  for (int j = 0; j < 101; ++j)
    if (x[j] > most && x[j] < 1e30f) most = x[best = j];
  *y = best;
}
