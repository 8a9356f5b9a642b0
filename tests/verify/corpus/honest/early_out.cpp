// control: sums that are done at once where a row is zeros: work that depends on the input
// expect: accepted
// problem: sum
// warploom: kernel sum grid=24 args=x,y
extern "C" void sum(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 1003;
  auto* y = static_cast<float*>(buffers[1]) + row;
  bool any = false;
  for (int i = 0; i < 1003; ++i) any |= x[i] != 0;
  *y = 0;
  if (!any) return;
  float sums[17] = {};
  for (int i = 0; i < 1003; ++i) sums[i % 17] += x[i];
  for (const float one : sums) *y += one;
}
