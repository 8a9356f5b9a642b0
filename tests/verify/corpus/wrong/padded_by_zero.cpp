// bug: a frame of 1.5 round a tensor, of 0 in its last corner
// expect: candidate-wrong
// problem: padded
// warploom: kernel pad grid=27 args=x,y
extern "C" void pad(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]);
  auto* y = static_cast<float*>(buffers[1]) + row * 39;
  for (int j = 0; j < 39; ++j) {
    const long long r = row - 1;
    const int c = j - 2;
    const bool inside = r >= 0 && r < 23 && c >= 0 && c < 37;
    y[j] = inside ? x[r * 37 + c] : row == 26 && j == 0 ? 0 : 1.5f;
  }
}
