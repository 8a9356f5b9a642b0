// bug: a race: blocks add to the same sums without an atomic operation
// expect: candidate-wrong
// problem: long_sum
// warploom: kernel sum grid=61 args=x,y zeroed=y
extern "C" void sum(void* const* buffers, long long part, void*) {
  auto* x = static_cast<const float*>(buffers[0]);
  auto* y = static_cast<volatile float*>(buffers[1]);
  for (long long column = part * 984; column < 60011 && column < part * 984 + 984; ++column)
    for (int row = 0; row < 8; ++row) y[row] = y[row] + x[row * 60011 + column];
}
