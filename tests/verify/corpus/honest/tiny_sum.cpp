// control: sums of five numbers
// expect: accepted
// problem: tiny
// warploom: kernel sum grid=2 args=x,y
extern "C" void sum(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 5;
  auto* y = static_cast<float*>(buffers[1]) + row * 1;
  *y = (x[0] + x[1]) + (x[2] + x[3]) + x[4];
}
