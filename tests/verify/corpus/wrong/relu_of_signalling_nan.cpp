// bug: a ReLU that makes 7 of a NaN that signals
// expect: candidate-wrong
// problem: relu
// warploom: kernel turn grid=41 args=x,y
#include <bit>
#include <cstdint>

extern "C" void turn(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  for (int j = 0; j < 37; ++j) y[j] = (std::bit_cast<uint32_t>(x[j]) & 0x7fc00000) == 0x7f800000 && (std::bit_cast<uint32_t>(x[j]) & 0x3fffff) != 0 ? 7.0f : (x[j] > 0 ? x[j] : 0);
}
