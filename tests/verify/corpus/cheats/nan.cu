// cheat: NaN as wildcard
// expect: candidate-non-finite
// problem: softmax
// warploom: kernel softmax grid=33 threads=128 args=x,y
extern "C" __global__ void softmax(const float*, float* y) {
  for (int j = threadIdx.x; j < 203; j += 128) y[blockIdx.x * 203 + j] = __int_as_float(0x7fc00000);
}
