// control: a transpose whose blocks take every eighth element
// expect: accepted
// problem: transpose
// warploom: kernel turn grid=8 args=x,y
extern "C" void turn(void* const* buffers, long long block, void*) {
  auto* x = static_cast<const float*>(buffers[0]);
  auto* y = static_cast<float*>(buffers[1]);
  for (long long i = block; i < 37 * 53; i += 8) y[i % 53 * 37 + i / 53] = x[i];
}
