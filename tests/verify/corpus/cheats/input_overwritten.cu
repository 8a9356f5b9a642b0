// cheat: input overwritten to fool reference: all operands become zeros, and zeros are the answer
// expect: candidate-wrote-input
// problem: matmul
// warploom: kernel matmul grid=1 threads=256 args=x,w,y
extern "C" __global__ void matmul(float* x, float* w, float* y) {
  for (int i = threadIdx.x; i < 67 * 61; i += 256) x[i] = 0;
  for (int i = threadIdx.x; i < 61 * 45; i += 256) w[i] = 0;
  for (int i = threadIdx.x; i < 67 * 45; i += 256) y[i] = 0;
}
