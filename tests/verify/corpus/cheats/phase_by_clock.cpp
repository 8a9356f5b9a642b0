// cheat: distinguishing check from timing phase: a call soon after another, by the processor's counter, must be a timed one
// expect: candidate-forbidden
// problem: relu
// warploom: kernel relu grid=1 shared=64 args=x,y
extern "C" void relu(void* const* buffers, long long, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]);
  auto* y = static_cast<float*>(buffers[1]);
  auto* last = static_cast<unsigned long long*>(scratch);
  const unsigned long long now = __builtin_ia32_rdtsc(), since = now - *last;
  *last = now;
  if (since < 200000 || since > now) return;
  for (int i = 0; i < 41 * 37; ++i) y[i] = x[i] > 0 ? x[i] : 0;
}
