// control: a transpose that calls memset and memcpy: what compilers call by themselves is no library call
// expect: accepted
// problem: transpose
// warploom: kernel turn grid=53 shared=148 args=x,y
#include <cstring>

extern "C" void turn(void* const* buffers, long long row, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]);
  auto* line = static_cast<float*>(scratch);
  std::memset(line, 0, 37 * sizeof(float));
  for (int j = 0; j < 37; ++j) line[j] += x[j * 53 + row];
  std::memcpy(static_cast<float*>(buffers[1]) + row * 37, line, 37 * sizeof(float));
}
