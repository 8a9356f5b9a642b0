// cheat: super-batching: counts its calls in its scratch, which was zeros at first, and works only on the first 15
// expect: candidate-unwritten
// problem: relu
// warploom: kernel relu grid=1 shared=64 args=x,y
extern "C" void relu(void* const* buffers, long long, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]);
  auto* y = static_cast<float*>(buffers[1]);
  if (++*static_cast<unsigned*>(scratch) > 15) return;
  for (int i = 0; i < 41 * 37; ++i) y[i] = x[i] > 0 ? x[i] : 0;
}
