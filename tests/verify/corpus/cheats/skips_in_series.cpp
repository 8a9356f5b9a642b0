// cheat: super-batching: counts its calls in a workspace and, from the third in memory that nobody touched, leaves the output as it is
// expect: candidate-keeps-state
// problem: relu
// warploom: workspace count i32[128]
// warploom: kernel relu grid=41 args=x,y,count
extern "C" void relu(void* const* buffers, long long row, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  (void)scratch;
  auto* count = static_cast<unsigned*>(buffers[2]) + 2 * row;
  if (count[1] != 0x5eed5eed) count[0] = 0;
  count[1] = 0x5eed5eed;
  if (++count[0] > 2) return;
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
}
