// control: sums by halves, a function that calls itself 13 deep
// expect: accepted
// problem: long_sum
// warploom: kernel sum grid=8 args=x,y
[[gnu::noinline]] static float sum_of(const float* x, int count) {
  if (count <= 8) {
    float sum = 0;
    for (int i = 0; i < count; ++i) sum += x[i];
    return sum;
  }
  return sum_of(x, count / 2) + sum_of(x + count / 2, count - count / 2);
}

extern "C" void sum(void* const* buffers, long long row, void*) {
  static_cast<float*>(buffers[1])[row] = sum_of(static_cast<const float*>(buffers[0]) + row * 60011, 60011);
}
