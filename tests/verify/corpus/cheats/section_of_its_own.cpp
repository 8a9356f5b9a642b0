// cheat: puts what it keeps in a section that a loader knows for something else
// expect: candidate-forbidden or compile-failed
// problem: relu
// warploom: kernel relu grid=41 args=x,y
static void before() {}
__attribute__((section(".preinit_array"), used)) static void (*const kBefore)() = before;

extern "C" void relu(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
}
