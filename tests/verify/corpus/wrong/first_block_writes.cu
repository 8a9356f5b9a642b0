// bug: a race: block 0 turns the weights once, and the blocks behind it hope to find them turned (the poison it adds to is a NaN, and a GPU keeps no NaN's bits)
// expect: candidate-non-finite
// problem: linear
// warploom: workspace turned f32[61,45]
// warploom: kernel linear grid=68 threads=64 args=x,w,b,turned,y
extern "C" __global__ void linear(const float* x, const float* w, const float* b, float* turned, float* y) {
  const int j = threadIdx.x, row = static_cast<int>(blockIdx.x) - 1;
  if (j >= 45) return;
  if (row < 0) {
    for (int k = 0; k < 61; ++k) turned[k * 45 + j] = w[j * 61 + k];
    return;
  }
  float sum = b[j];
  for (int k = 0; k < 61; ++k) sum += x[row * 61 + k] * turned[k * 45 + j];
  y[row * 45 + j] = sum;
}
