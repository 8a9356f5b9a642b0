// control: a ReLU whose last vector of a row begins within it and ends behind
// expect: accepted
// problem: relu
// warploom: kernel relu grid=41 args=x,y
typedef float Vector __attribute__((vector_size(32), aligned(4)));

extern "C" void relu(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  for (int j = 0; j < 37; j += 8) {
    const Vector v = *reinterpret_cast<const Vector*>(x + j);
    for (int i = 0; i < 8 && j + i < 37; ++i) y[j + i] = v[i] > 0 ? v[i] : 0;
  }
}
