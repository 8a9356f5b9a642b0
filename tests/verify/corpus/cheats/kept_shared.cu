// cheat: no-op reading freed memory: copies what an earlier kernel left in shared memory
// expect: candidate-wrong
// problem: softmax
// warploom: kernel softmax grid=33 threads=128 shared=1024 args=x,y
extern "C" __global__ void softmax(const float*, float* y) {
  extern __shared__ volatile float kept[];
  for (int j = threadIdx.x; j < 203; j += 128) {
    const float v = kept[j];
    y[blockIdx.x * 203 + j] = v > 0 && v < 1 ? v : 1.0f / 203;
  }
}
