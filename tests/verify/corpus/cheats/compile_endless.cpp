// cheat: machine: a constant whose computing does not end
// expect: compile-failed or compile-timeout
// problem: relu
// warploom: kernel relu grid=41 args=x,y
constexpr unsigned long endless(unsigned long n) {
  unsigned long all = 0;
  for (unsigned long i = 0; i < n; ++i)
    for (unsigned long j = 0; j < n; ++j) all += i ^ j;
  return all;
}
static constexpr unsigned long kAll = endless(262143);

extern "C" void relu(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
}
