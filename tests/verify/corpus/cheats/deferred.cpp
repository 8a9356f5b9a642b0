// cheat: side stream, deferred work: a call does the work of the call before it, whose place it noted in its scratch
// expect: candidate-unwritten
// problem: relu
// warploom: kernel relu grid=1 shared=64 args=x,y
extern "C" void relu(void* const* buffers, long long, void* scratch) {
  struct Note {
    const float* x;
    float* y;
    unsigned long long seal;
  };
  auto* note = static_cast<Note*>(scratch);
  if (note->seal == 0x5ea1ed5ea1ed5ea1ull)
    for (int i = 0; i < 41 * 37; ++i) note->y[i] = note->x[i] > 0 ? note->x[i] : 0;
  *note = {static_cast<const float*>(buffers[0]), static_cast<float*>(buffers[1]), 0x5ea1ed5ea1ed5ea1ull};
}
