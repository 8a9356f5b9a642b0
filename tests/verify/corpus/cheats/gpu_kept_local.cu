// cheat: no-op reading freed memory: copies what an earlier kernel left in local memory
// expect: candidate-wrong
// problem: softmax
// warploom: kernel softmax grid=33 threads=128 args=x,y
extern "C" __global__ void softmax(const float*, float* y) {
  volatile float kept[64];
  for (int j = threadIdx.x; j < 203; j += 128) {
    const float v = kept[j & 63];
    y[blockIdx.x * 203 + j] = v > 0 && v < 1 ? v : 1.0f / 203;
  }
}
