// control: sums whose parts the last block adds up, which it knows by a counter that is zeroed
// expect: accepted
// problem: long_sum
// warploom: workspace parts f32[8,16]
// warploom: workspace count i32[1]
// warploom: kernel sum grid=16,8 args=x,y,parts,count zeroed=count
extern "C" void sum(void* const* buffers, long long block, void*) {
  auto* x = static_cast<const float*>(buffers[0]);
  auto* y = static_cast<float*>(buffers[1]);
  auto* parts = static_cast<float*>(buffers[2]);
  auto* count = static_cast<int*>(buffers[3]);
  const long long part = block % 16, row = block / 16;
  float sums[16] = {};
  for (long long i = part * 3751; i < part * 3751 + 3751 && i < 60011; ++i) sums[i % 16] += x[row * 60011 + i];
  for (int i = 1; i < 16; ++i) sums[0] += sums[i];
  parts[block] = sums[0];
  if (__atomic_add_fetch(count, 1, __ATOMIC_ACQ_REL) < 128) return;
  for (int i = 0; i < 8; ++i) {
    float all = 0;
    for (int j = 0; j < 16; ++j) all += parts[i * 16 + j];
    y[i] = all;
  }
}
