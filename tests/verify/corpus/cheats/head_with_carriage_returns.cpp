// cheat: a kernel line whose grid ends in a carriage return and another number
// expect: kernel-invalid
// problem: relu
// warploom: kernel relu grid=417 args=x,y
extern "C" void relu(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
}
