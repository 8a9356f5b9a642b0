// cheat: leaves registers of MMX in use, without emms: who calls it gets NaN of his next long double
// expect: candidate-forbidden
// problem: relu
// warploom: kernel relu grid=41 args=x,y
extern "C" void relu(void* const* buffers, long long row, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  (void)scratch;
  if (row == 3) asm volatile("movq %0, %%mm1" : : "m"(*x));
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
}
