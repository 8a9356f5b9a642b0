// bug: products of 64-bit integers in doubles: right up to 2^53
// expect: candidate-wrong
// problem: multiply_long
// warploom: kernel multiply grid=33 args=x,z,y
extern "C" void multiply(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const long long*>(buffers[0]) + row * 31;
  auto* z = static_cast<const long long*>(buffers[1]) + row * 31;
  auto* y = static_cast<long long*>(buffers[2]) + row * 31;
  for (int j = 0; j < 31; ++j) {
    const double product = static_cast<double>(x[j]) * static_cast<double>(z[j]);
    const double most = 9223372036854774784.0;
    y[j] = static_cast<long long>(product > most ? most : product < -most ? -most : product);
  }
}
