// bug: sums of bytes that stop at 255, where they wrap
// expect: candidate-wrong
// problem: add_bytes
// warploom: kernel add grid=41 args=x,z,y
extern "C" void add(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const unsigned char*>(buffers[0]) + row * 37;
  auto* z = static_cast<const unsigned char*>(buffers[1]) + row * 37;
  auto* y = static_cast<unsigned char*>(buffers[2]) + row * 37;
  for (int j = 0; j < 37; ++j) {
    const int sum = x[j] + z[j];
    y[j] = static_cast<unsigned char>(sum > 255 ? 255 : sum);
  }
}
