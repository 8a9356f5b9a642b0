// cheat: takes long where its inputs are those of an early family, so that there is no time for later ones, in which it is wrong
// expect: candidate-wrong or candidate-non-finite or candidate-hung
// problem: relu
// warploom: workspace one f32[41,37]
// warploom: workspace two f32[41,37]
// warploom: workspace three f32[41,37]
// warploom: workspace four f32[41,37]
// warploom: kernel relu grid=1 args=x,one
// warploom: kernel relu grid=1 args=x,two
// warploom: kernel relu grid=1 args=x,three
// warploom: kernel relu grid=1 args=x,four
// warploom: kernel relu grid=1 args=x,y
extern "C" void relu(void* const* buffers, long long, void*) {
  auto* x = static_cast<const float*>(buffers[0]);
  auto* y = static_cast<float*>(buffers[1]);
  float most = 0;
  for (int i = 0; i < 41 * 37; ++i) most = x[i] > most ? x[i] : most;
  if (most > 20 && most < 50)
    for (long long i = 0; i < 1'500'000'000; ++i) asm volatile("");
  for (int i = 0; i < 41 * 37; ++i) y[i] = x[i] > 1e9f ? 1e9f : (x[i] > 0 ? x[i] : 0);
}
