// cheat: leaves the floating-point unit of old full: who calls it gets NaN of his next long double
// expect: candidate-forbidden
// problem: relu
// warploom: kernel relu grid=41 args=x,y
extern "C" void relu(void* const* buffers, long long row, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  (void)scratch;
  asm volatile("fldpi\n\tfldpi\n\tfldpi\n\tfldpi\n\tfldpi\n\tfldpi\n\tfldpi\n\tfldpi");
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
}
