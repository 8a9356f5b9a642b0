// cheat: library call as kernel: a function of a library that the judge's own process may have loaded
// expect: candidate-forbidden
// problem: matmul
// warploom: kernel matmul grid=1 args=x,w,y
extern "C" int dnnl_sgemm(char, char, long, long, long, float, const float*, long, const float*, long, float, float*, long);

extern "C" void matmul(void* const* buffers, long long, void*) {
  dnnl_sgemm('N', 'N', 67, 45, 61, 1, static_cast<float*>(buffers[0]), 61, static_cast<float*>(buffers[1]), 45, 0,
             static_cast<float*>(buffers[2]), 45);
}
