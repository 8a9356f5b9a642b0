// cheat: defeat device: asks which processor this is by the compiler's own means, which run when it is loaded
// expect: candidate-forbidden
// problem: relu
// warploom: kernel relu grid=41 args=x,y
extern "C" void relu(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  if (!__builtin_cpu_supports("sse2")) return;
  if (__builtin_cpu_is("amdfam10h")) return;
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
}
