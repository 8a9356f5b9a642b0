// control: a mean in eight parts
// expect: accepted
// problem: mean
// warploom: kernel mean grid=24 args=x,y
extern "C" void mean(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 203;
  auto* y = static_cast<float*>(buffers[1]) + row * 1;
  float sums[8] = {};
  for (int j = 0; j < 203; ++j) sums[j % 8] += x[j];
  *y = (((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]))) / 203;
}
