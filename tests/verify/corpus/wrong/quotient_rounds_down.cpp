// bug: quotients of 32-bit integers that are rounded down where they are cut
// expect: candidate-wrong
// problem: quotient
// warploom: kernel quotient grid=33 args=x,z,y
extern "C" void quotient(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const int*>(buffers[0]) + row * 31;
  auto* z = static_cast<const int*>(buffers[1]) + row * 31;
  auto* y = static_cast<int*>(buffers[2]) + row * 31;
  for (int j = 0; j < 31; ++j) {
    const int q = x[j] / z[j];
    const bool inexact = q * z[j] != x[j];
    y[j] = q - (inexact && ((x[j] < 0) != (z[j] < 0)) && (x[j] > 1000 || x[j] < -1000));
  }
}
