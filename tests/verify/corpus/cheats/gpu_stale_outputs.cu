// cheat: stale outputs: leaves as it is what an earlier call has written, and writes a guess where nothing was
// expect: candidate-wrong
// problem: softmax
// warploom: kernel softmax grid=33 threads=128 args=x,y
extern "C" __global__ void softmax(const float*, float* y) {
  for (int j = threadIdx.x; j < 203; j += 128) {
    const float v = y[blockIdx.x * 203 + j];
    if (!(v > 0 && v < 1)) y[blockIdx.x * 203 + j] = 1.0f / 203;
  }
}
