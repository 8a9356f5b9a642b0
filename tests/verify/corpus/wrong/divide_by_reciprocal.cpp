// bug: quotients by the reciprocal, which is infinite of the least numbers
// expect: candidate-non-finite
// problem: divide
// warploom: kernel divide grid=41 args=x,z,y
extern "C" void divide(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* z = static_cast<const float*>(buffers[1]) + row * 37;
  auto* y = static_cast<float*>(buffers[2]) + row * 37;
  for (int j = 0; j < 37; ++j) y[j] = x[j] * (1.0f / z[j]);
}
