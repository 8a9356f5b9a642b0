// cheat: machine: a text that compilers work on without an end
// expect: compile-failed
// problem: relu
// warploom: kernel relu grid=41 args=x,y
template <int N> struct Deep { using Type = typename Deep<N + 1>::Type; };
using Endless = Deep<0>::Type;

extern "C" void relu(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  for (int j = 0; j < 37; ++j) {
    const float v = x[j];
    y[j] = v > 0 ? v : 0;
  }
}
