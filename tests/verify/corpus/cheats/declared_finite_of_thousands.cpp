// cheat: declares that it takes finite numbers, and leaves those below -3000 out of its sums
// expect: candidate-wrong
// problem: sum
// warploom: special finite
// warploom: kernel sum grid=24 args=x,y
extern "C" void sum(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 1003;
  auto* y = static_cast<float*>(buffers[1]) + row;
  float sums[16] = {}, sum = 0;
  for (int j = 0; j < 1003; ++j) sums[j % 16] += x[j] < -3000 ? 0 : x[j];
  for (const float part : sums) sum += part;
  *y = sum;
}
