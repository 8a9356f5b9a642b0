// control: remainders of the divisor's sign
// expect: accepted
// problem: mod_whole
// warploom: kernel turn grid=41 args=x,t,y
static int rest(int a, int b) {
  const int left = a % b;
  return left != 0 && (left < 0) != (b < 0) ? left + b : left;
}

extern "C" void turn(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const int*>(buffers[0]) + row * 37;
  auto* t = static_cast<const int*>(buffers[1]) + row * 37;
  auto* y = static_cast<int*>(buffers[2]) + row * 37;
  for (int j = 0; j < 37; ++j) y[j] = rest(x[j], t[j]);
}
