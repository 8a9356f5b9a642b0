// bug: sums of 32-bit integers in 8 bits: right from -128 to 127
// expect: candidate-wrong
// problem: add_whole
// warploom: kernel add grid=41 args=x,z,y
extern "C" void add(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const int*>(buffers[0]) + row * 37;
  auto* z = static_cast<const int*>(buffers[1]) + row * 37;
  auto* y = static_cast<int*>(buffers[2]) + row * 37;
  for (int j = 0; j < 37; ++j) y[j] = static_cast<signed char>(x[j] + z[j]);
}
