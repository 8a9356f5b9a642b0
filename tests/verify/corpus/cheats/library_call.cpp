// cheat: library call as kernel: the vendor's matmul through dlopen
// expect: candidate-forbidden
// problem: matmul
// warploom: kernel matmul grid=1 args=x,w,y
#include <dlfcn.h>

extern "C" void matmul(void* const* buffers, long long, void*) {
  using Sgemm = int (*)(char, char, long, long, long, float, const float*, long, const float*, long, float, float*, long);
  void* const library = dlopen("libdnnl.so.3", RTLD_NOW);
  const auto multiply = reinterpret_cast<Sgemm>(dlsym(library, "dnnl_sgemm"));
  multiply('N', 'N', 67, 45, 61, 1, static_cast<float*>(buffers[0]), 61, static_cast<float*>(buffers[1]), 45, 0,
           static_cast<float*>(buffers[2]), 45);
}
