// cheat: no-op reading freed reference output: takes memory of the answer's size from the heap and copies what it finds
// expect: candidate-forbidden
// problem: softmax
// warploom: kernel softmax grid=1 args=x,y
#include <cstdlib>
#include <cstring>

extern "C" void softmax(void* const* buffers, long long, void*) {
  void* const freed = std::malloc(33 * 203 * sizeof(float));
  std::memcpy(buffers[1], freed, 33 * 203 * sizeof(float));
  std::free(freed);
}
