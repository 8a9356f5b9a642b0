// control: sums in long double, on the floating-point unit of old
// expect: accepted
// problem: sum
// warploom: kernel sum grid=24 args=x,y
extern "C" void sum(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 1003;
  long double all = 0;
  for (int i = 0; i < 1003; ++i) all += x[i];
  static_cast<float*>(buffers[1])[row] = static_cast<float>(all);
}
