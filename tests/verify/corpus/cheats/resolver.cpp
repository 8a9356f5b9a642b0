// cheat: machine: an indirect function, whose resolver the loader runs
// expect: candidate-forbidden
// problem: relu
// warploom: kernel relu grid=41 args=x,y
static float positive(float v) { return v > 0 ? v : 0; }
extern "C" float (*choose())(float) { return positive; }
extern "C" float chosen(float) __attribute__((ifunc("choose")));

extern "C" void relu(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  for (int j = 0; j < 37; ++j) {
    const float v = x[j];
    y[j] = chosen(v);
  }
}
