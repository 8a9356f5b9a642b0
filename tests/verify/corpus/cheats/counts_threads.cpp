// cheat: its last bits depend on how many threads there are, counted by their scratch
// expect: candidate-unstable
// problem: relu
// warploom: workspace seen i64[1]
// warploom: kernel relu grid=41 args=x,y,seen zeroed=seen shared=64
extern "C" void relu(void* const* buffers, long long row, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  (void)scratch;
  auto* seen = static_cast<unsigned long long*>(buffers[2]);
  unsigned long long none = 0;
  const auto mine = reinterpret_cast<unsigned long long>(scratch);
  __atomic_compare_exchange_n(seen, &none, mine, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  const bool other = none != 0 && none != mine;
  for (int j = 0; j < 37; ++j) y[j] = x[j] > 0 ? x[j] : 0;
  if (other)
    for (int j = 0; j < 37; ++j) y[j] *= 1.0000001f;
}
