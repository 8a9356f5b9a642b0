// cheat: hostile head: a workspace whose name holds escapes for the terminal, in an error that names it
// expect: candidate-wrote-input
// problem: relu
// warploom: workspace mo[2Jre f32[4]
// warploom: kernel relu grid=41 args=x,y,mo[2Jre
extern "C" void relu(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  static_cast<float*>(buffers[2])[4] = 1;
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
}
