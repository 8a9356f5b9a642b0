// cheat: defeat device: works only where its stack lies within a terabyte of its output
// expect: candidate-unwritten or candidate-unstable
// problem: relu
// warploom: kernel relu grid=41 args=x,y
extern "C" void relu(void* const* buffers, long long row, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  (void)scratch;
  const auto stack = reinterpret_cast<long long>(__builtin_frame_address(0));
  const long long apart = stack - reinterpret_cast<long long>(y);
  if (apart > (1ll << 40) || apart < -(1ll << 40)) return;
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
}
