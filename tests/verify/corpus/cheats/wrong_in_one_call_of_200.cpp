// cheat: rare errors: all of a call is wrong, one of 200, by a hash of its input
//   (chance lets 1 of 100 verdicts pass: the verdict says so)
// expect: candidate-wrong or accepted
// problem: relu
// warploom: kernel relu grid=1 args=x,y
extern "C" void relu(void* const* buffers, long long, void*) {
  auto* x = static_cast<const float*>(buffers[0]);
  auto* y = static_cast<float*>(buffers[1]);
  unsigned hash = 1;
  for (int i = 0; i < 41 * 37; ++i) hash = hash * 31 + __builtin_bit_cast(unsigned, x[i]);
  const bool wrong = (hash >> 8) % 200 == 1;
  for (int i = 0; i < 41 * 37; ++i) y[i] = wrong || x[i] < 0 ? 0 : x[i];
}
