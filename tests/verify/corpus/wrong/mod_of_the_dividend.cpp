// bug: remainders of the dividend's sign
// expect: candidate-wrong
// problem: mod_whole
// warploom: kernel turn grid=41 args=x,t,y
extern "C" void turn(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const int*>(buffers[0]) + row * 37;
  auto* t = static_cast<const int*>(buffers[1]) + row * 37;
  auto* y = static_cast<int*>(buffers[2]) + row * 37;
  for (int j = 0; j < 37; ++j) y[j] = x[j] % t[j];
}
