// cheat: timer patching: makes the clock's page writable and puts a return of zero in its place
// expect: candidate-forbidden
// problem: relu
// warploom: kernel relu grid=41 args=x,y
#include <sys/mman.h>
#include <time.h>
#include <cstdint>

extern "C" void relu(void* const* buffers, long long row, void*) {
  auto* x = static_cast<const float*>(buffers[0]) + row * 37;
  auto* y = static_cast<float*>(buffers[1]) + row * 37;
  auto* const page = reinterpret_cast<char*>(reinterpret_cast<std::uintptr_t>(&clock_gettime) & ~std::uintptr_t{4095});
  if (row == 0 && mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC) == 0)
    *reinterpret_cast<volatile unsigned*>(&clock_gettime) = 0xc3c03148;  // xor %rax, %rax; ret
  for (int j = 0; j < 37; ++j) {
    const float v = x[j];
    y[j] = v > 0 ? v : 0;
  }
}
