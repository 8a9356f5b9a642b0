// bug: 32-bit integers as bytes, which stop at 127
// expect: candidate-wrong
// problem: cast_bytes
// warploom: kernel turn grid=41 args=x,y
extern "C" void turn(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const int*>(buffers[0]) + row * 37;
  auto* y = static_cast<signed char*>(buffers[1]) + row * 37;
  for (int j = 0; j < 37; ++j) y[j] = static_cast<signed char>(x[j] > 127 ? 127 : (x[j] < -128 ? -128 : x[j]));
}
