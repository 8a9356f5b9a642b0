// control: a ReLU by addresses of labels, which one step after the other jumps to
// expect: accepted
// problem: relu
// warploom: kernel relu grid=41 args=x,y
extern "C" void relu(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  static const void* const kSteps[] = {&&keep, &&drop, &&end};
  int j = 0;
  goto next;
keep:
  y[j] = x[j];
  ++j;
  goto next;
drop:
  y[j] = 0;
  ++j;
next:
  goto* kSteps[j == 37 ? 2 : (x[j] > 0 ? 0 : 1)];
end:
  return;
}
