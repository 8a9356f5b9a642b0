// control: a transpose through 512 KB of local variables, of which it uses all
// expect: accepted
// problem: transpose
// warploom: kernel transpose grid=1 args=x,y
extern "C" void transpose(void* const* buffers, long long, void*) {
  auto* x = static_cast<const float*>(buffers[0]);
  auto* y = static_cast<float*>(buffers[1]);
  volatile float local[131072];
  for (int i = 0; i < 131072; ++i) local[i] = x[i % (37 * 53)];
  for (int i = 0; i < 37; ++i)
    for (int j = 0; j < 53; ++j) y[j * 37 + i] = local[i * 53 + j + 37 * 53 * 60];
}
