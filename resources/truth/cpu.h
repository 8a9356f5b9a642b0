// The same words on a CPU: a block is one task, of one thread.
#include <math.h>
#include <cstring>
#define FUNCTION static inline
static thread_local long long block_number;
#define KERNEL(name, Task) KERNEL_##name(name, Task)
#define BODY(name, Task) FUNCTION void name##_body(const Task& task)
#define ENTRY(name, Task)                                               \
  static void name##_body(const Task& task);                            \
  extern "C" void name(void* const* buffers, long long number, void*) { \
    block_number = number;                                              \
    name##_body(*static_cast<const Task*>(buffers[0]));                 \
  }                                                                     \
  static void name##_body(const Task& task)
#define SHARED
#define EACH_THREAD(t) for (int t = 0; t < 256; ++t)
#define OWN 256
FUNCTION int own(int t) { return t; }
FUNCTION int lane() { return 0; }
FUNCTION int lanes() { return 1; }
FUNCTION long long block() { return block_number; }
FUNCTION long long blocks() { return BLOCKS; }
FUNCTION void meet() {}
FUNCTION float as_float(unsigned bits) { float x; std::memcpy(&x, &bits, 4); return x; }
FUNCTION unsigned as_bits(float x) { unsigned bits; std::memcpy(&bits, &x, 4); return bits; }
FUNCTION void add_to(Word address, Word number) {
  __atomic_fetch_add(reinterpret_cast<Word*>(address), number, __ATOMIC_RELAXED);
}
FUNCTION double nan_number() { return __builtin_nan(""); }
FUNCTION double infinite() { return __builtin_inf(); }
#define UNROLL
