// bug: a ReLU by a table whose place is made of the number: NaN has none in it
// expect: candidate-crashed or candidate-wrong or candidate-forbidden
// problem: relu
// warploom: kernel turn grid=41 args=x,y
static const float kKept[4] = {0, 0, 1, 1};

extern "C" void turn(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  for (int j = 0; j < 37; ++j) {
    const float scaled = x[j] * 1e9f;
    int place = static_cast<int>(scaled);
    asm volatile("" : "+r"(place));
    const int clamped = place == -2147483647 - 1 ? (scaled > 0 ? 3 : (scaled < 0 ? 0 : place)) : (place > 0 ? 2 : 1);
    y[j] = kKept[clamped] != 0 ? x[j] : 0;
  }
}
