// cheat: hostile head: a workspace whose sizes multiply to 2^64
// expect: kernel-invalid
// problem: relu
// warploom: workspace more f32[1099511627776,1048576,16]
// warploom: kernel relu grid=41 args=x,y,more
extern "C" void relu(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
}
