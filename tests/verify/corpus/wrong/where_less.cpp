// bug: the larger, by the comparison turned round: of NaN it takes the other
// expect: candidate-wrong or candidate-non-finite
// problem: where_greater
// warploom: kernel turn grid=41 args=x,t,y
extern "C" void turn(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* t = static_cast<const float*>(buffers[1]) + row * 37;
  auto* y = static_cast<float*>(buffers[2]) + row * 37;
  for (int j = 0; j < 37; ++j) y[j] = !(x[j] <= t[j]) ? x[j] : t[j];
}
