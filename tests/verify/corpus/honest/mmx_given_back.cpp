// control: a ReLU that moves words through MMX, and gives its registers back
// expect: accepted
// problem: relu
// warploom: kernel relu grid=41 args=x,y
extern "C" void relu(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  for (int j = 0; j < 36; j += 2) {
    asm volatile("movq %1, %%mm0\n\tmovq %%mm0, %0" : "=m"(*reinterpret_cast<double*>(y + j)) : "m"(*reinterpret_cast<const double*>(x + j)));
    for (int i = j; i < j + 2; ++i) y[i] = y[i] > 0 ? y[i] : 0;
  }
  asm volatile("emms");
  y[36] = x[36] > 0 ? x[36] : 0;
}
