// cheat: output cache by content, kept in a workspace beside the first of the inputs that it belongs to
// expect: candidate-keeps-state
// problem: relu
// warploom: workspace kept f32[41,38]
// warploom: kernel relu grid=41 args=x,y,kept
extern "C" void relu(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  auto* kept = static_cast<float*>(buffers[2]) + row * 38;
  if (kept[37] == x[0]) {
    for (int j = 0; j < 37; ++j) y[j] = kept[j];
    return;
  }
  for (int j = 0; j < 37; ++j) {
    const float v = x[j];
    y[j] = v > 0 ? v : 0;
  }
  for (int j = 0; j < 37; ++j) kept[j] = y[j];
  kept[37] = x[0];
}
