// control: a ReLU that copies, moves, sets and compares with sizes from 0 to a megabyte, in scratch
// expect: accepted
// problem: relu
// warploom: kernel relu grid=1 shared=2097152 args=x,y
#include <cstring>

extern "C" void relu(void* const* buffers, long long, void* scratch) {
  auto* x = static_cast<const float*>(buffers[0]);
  auto* y = static_cast<float*>(buffers[1]);
  auto* bytes = static_cast<char*>(scratch);
  constexpr int kBytes = 41 * 37 * 4;
  bool good = true;
  const volatile int more = 1;
  for (int size = 0; size <= 1 << 20; size = size * 2 + more) {
    std::memset(bytes, 7, size);
    std::memmove(bytes + 5, bytes, size);
    std::memmove(bytes, bytes + 5, size);
    std::memcpy(bytes + (1 << 20), bytes, size);
    good = good && std::memcmp(bytes, bytes + (1 << 20), size) == 0;
    bytes[size] = 9;
    bytes[(1 << 20) + size] = 8;
    good = good && (size == 1 << 20 || std::memcmp(bytes, bytes + (1 << 20), size + more) > 0);
  }
  std::memcpy(bytes, x, kBytes);
  if (good) std::memcpy(y, bytes, kBytes);
  for (int i = 0; i < 41 * 37; ++i) y[i] = y[i] < 0 ? 0 : y[i];
}
