// control: a ReLU with the compiler's guard on its stack
// expect: accepted
// problem: relu
// warploom: kernel relu grid=41 args=x,y
#pragma GCC optimize("stack-protector-all")

extern "C" void relu(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  float local[37];
  for (int j = 0; j < 37; ++j) local[j] = x[j] < 0 ? 0 : x[j];
  for (int j = 0; j < 37; ++j) y[j] = local[j];
}
