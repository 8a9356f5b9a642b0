// bug: indices below 0 read 0, where ONNX counts them from the end
// expect: candidate-wrong
// problem: rows
// warploom: kernel look grid=12 args=x,i,y
extern "C" void look(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]);
  const long long index = static_cast<const long long*>(buffers[1])[row];
  auto* y = static_cast<float*>(buffers[2]) + row * 24;
  const bool inside = index >= 0 && index < 50;
  for (int j = 0; j < 24; ++j) y[j] = inside ? x[index * 24 + j] : 0;
}
