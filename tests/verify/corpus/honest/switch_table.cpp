// control: a ReLU by a table of jumps over where an element stands in its row
// expect: accepted
// problem: relu
// warploom: kernel relu grid=41 args=x,y
[[gnu::noinline]] static float by_place(int place, float v) {
  switch (place) {
    case 0: return v > 0 ? v : 0;
    case 1: return v < 0 ? 0 : v;
    case 2: return v >= 0 ? v : 0;
    case 3: return (v > 0) * 1.0f != 0 ? v : v != v ? v : 0;
    case 4: return __builtin_signbit(v) && v == v ? 0 : v;
    case 5: return v > 1 ? v : v > 0 ? v : 0;
    case 6: return v <= 0 ? 0 : v;
    case 7: return !(v > 0) ? (v != v ? v : 0) : v;
    default: return v > 0 ? v : 0;
  }
}

extern "C" void relu(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  for (int j = 0; j < 37; ++j) y[j] = by_place(j % 9, x[j]);
}
