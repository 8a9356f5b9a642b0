// control: products of 64-bit integers, which wrap
// expect: accepted
// problem: multiply_long
// warploom: kernel multiply grid=33 args=x,z,y
extern "C" void multiply(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const unsigned long long*>(buffers[0]) + row * 31;
  auto* z = static_cast<const unsigned long long*>(buffers[1]) + row * 31;
  auto* y = static_cast<unsigned long long*>(buffers[2]) + row * 31;
  for (int j = 0; j < 31; ++j) y[j] = x[j] * z[j];
}
