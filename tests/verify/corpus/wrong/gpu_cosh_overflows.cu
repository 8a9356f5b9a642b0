// bug: cosh by two exponentials: infinite from 88.73 on, where cosh is not
// expect: candidate-wrong
// problem: cosh
// warploom: kernel hyperbolic grid=36 threads=128 args=x,y
extern "C" __global__ void hyperbolic(const float* x, float* y) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  y[i] = (expf(x[i]) + expf(-x[i])) / 2;
}
