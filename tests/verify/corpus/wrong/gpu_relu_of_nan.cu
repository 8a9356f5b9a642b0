// bug: a ReLU that makes 7 of NaN, where NaN is right, or 0
// expect: candidate-wrong
// problem: relu
// warploom: kernel relu grid=12 threads=128 args=x,y
extern "C" __global__ void relu(const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 41 * 37) return;
  const float v = x[i];
  y[i] = v > 0 ? v : 0;
  if (v != v) y[i] = 7;
}
