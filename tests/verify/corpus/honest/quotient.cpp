// control: quotients of 32-bit integers, cut towards 0
// expect: accepted
// problem: quotient
// warploom: kernel quotient grid=33 args=x,z,y
extern "C" void quotient(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const int*>(buffers[0]) + row * 31;
  auto* z = static_cast<const int*>(buffers[1]) + row * 31;
  auto* y = static_cast<int*>(buffers[2]) + row * 31;
  for (int j = 0; j < 31; ++j) y[j] = x[j] / z[j];
}
