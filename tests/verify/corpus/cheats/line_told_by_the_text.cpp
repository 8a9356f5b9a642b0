// cheat: a text that says of its lines that they are another file's, so that a refusal names the wrong place
// expect: candidate-forbidden
// problem: relu
// warploom: kernel relu grid=41 args=x,y
extern "C" void relu(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
#line 1 "somebody_else.cpp"
  if (__builtin_ia32_rdtsc() % 4096 == 7) return;
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
}
