// control: a ReLU in one block
// expect: accepted
// problem: relu
// warploom: kernel relu grid=1 args=x,y
extern "C" void relu(void* const* buffers, long long, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]);
  auto* y = static_cast<float*>(buffers[1]);
  (void)scratch;
  for (int i = 0; i < 41 * 37; ++i) y[i] = x[i] > 0 ? x[i] : 0;
}
