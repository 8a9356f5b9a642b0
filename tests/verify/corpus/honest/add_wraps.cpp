// control: sums of 32-bit integers, which wrap
// expect: accepted
// problem: add_whole
// warploom: kernel add grid=41 args=x,z,y
extern "C" void add(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const unsigned*>(buffers[0]) + row * 37;
  auto* z = static_cast<const unsigned*>(buffers[1]) + row * 37;
  auto* y = static_cast<unsigned*>(buffers[2]) + row * 37;
  for (int j = 0; j < 37; ++j) y[j] = x[j] + z[j];
}
