// bug: quotients of 32-bit integers in floats
// expect: candidate-wrong
// problem: quotient
// warploom: kernel quotient grid=33 args=x,z,y
extern "C" void quotient(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const int*>(buffers[0]) + row * 31;
  auto* z = static_cast<const int*>(buffers[1]) + row * 31;
  auto* y = static_cast<int*>(buffers[2]) + row * 31;
  for (int j = 0; j < 31; ++j) {
    const float q = static_cast<float>(x[j]) / static_cast<float>(z[j]);
    y[j] = q >= 2147483520.0f ? 2147483647 : static_cast<int>(q);
  }
}
