// control: a ReLU by a constant table of functions
// expect: accepted
// problem: relu
// warploom: kernel relu grid=41 args=x,y
static float keep(float v) { return v; }
static float drop(float v) { return v != v ? v : 0; }
static float (*const kFunctions[2])(float) = {drop, keep};
static const char* const kNames[2] = {"drop", "keep"};

extern "C" void relu(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  for (int j = 0; j < 37; ++j) {
    const volatile int which = x[j] > 0;
    const int named = kNames[which][0] == 'k';
    y[j] = kFunctions[named](x[j]);
  }
}
