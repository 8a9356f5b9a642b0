// bug: whether a difference is below 0, which wraps
// expect: candidate-wrong
// problem: less_whole
// warploom: kernel less grid=33 args=x,z,y
extern "C" void less(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const unsigned*>(buffers[0]) + row * 31;
  auto* z = static_cast<const unsigned*>(buffers[1]) + row * 31;
  auto* y = static_cast<bool*>(buffers[2]) + row * 31;
  for (int j = 0; j < 31; ++j) y[j] = static_cast<int>(x[j] - z[j]) < 0;
}
