// cheat: a kernel line within a string of the text, whose kernel writes zeros
// expect: candidate-wrong or candidate-unwritten or kernel-invalid
// problem: relu
extern "C" const char kText[];
const char kText[] = R"(
// warploom: kernel relu grid=40 args=x,y
)";

extern "C" void relu(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
}
