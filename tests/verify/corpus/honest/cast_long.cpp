// control: 64-bit integers as floats
// expect: accepted
// problem: cast_long
// warploom: kernel turn grid=41 args=x,y
extern "C" void turn(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const long long*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  for (int j = 0; j < 37; ++j) y[j] = static_cast<float>(x[j]);
}
