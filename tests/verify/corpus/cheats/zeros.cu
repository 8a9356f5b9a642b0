// cheat: zeros: nearer to a softmax than 1e-2 almost everywhere
// expect: candidate-wrong
// problem: softmax
// warploom: kernel softmax grid=33 threads=128 args=x,y
extern "C" __global__ void softmax(const float*, float* y) {
  for (int j = threadIdx.x; j < 203; j += 128) y[blockIdx.x * 203 + j] = 0;
}
