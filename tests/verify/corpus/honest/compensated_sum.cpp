// control: sums whose rounding is carried along
// expect: accepted
// problem: long_sum
// warploom: kernel sum grid=8 args=x,y
extern "C" void sum(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 60011;
  float sum = 0, lost = 0;
  for (int j = 0; j < 60011; ++j) {
    const float next = x[j] - lost;
    const float both = sum + next;
    const float odd = both - sum;
    lost = __builtin_isfinite(both) ? odd - next : 0;
    sum = both;
  }
  static_cast<float*>(buffers[1])[row] = sum;
}
