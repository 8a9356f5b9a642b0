// cheat: fallback in exception path: its own code throws, a library does the work
// expect: candidate-forbidden or compile-failed
// problem: matmul
// warploom: kernel matmul grid=1 args=x,w,y
#include <dlfcn.h>

static void fast(const float*) { throw 1; }

extern "C" void matmul(void* const* buffers, long long, void*) {
  using Sgemm = int (*)(char, char, long, long, long, float, const float*, long, const float*, long, float, float*, long);
  try {
    fast(static_cast<float*>(buffers[0]));
  } catch (int) {
    const auto multiply = reinterpret_cast<Sgemm>(dlsym(dlopen("libdnnl.so.3", RTLD_NOW), "dnnl_sgemm"));
    multiply('N', 'N', 67, 45, 61, 1, static_cast<float*>(buffers[0]), 61, static_cast<float*>(buffers[1]), 45, 0,
             static_cast<float*>(buffers[2]), 45);
  }
}
