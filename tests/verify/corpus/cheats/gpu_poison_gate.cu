// cheat: a defeat device: works only where the output holds what this judge fills it with
// expect: candidate-wrong or candidate-unstable
// problem: relu
// warploom: kernel relu grid=12 threads=128 args=x,y
extern "C" __global__ void relu(const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 41 * 37) return;
  const bool judged = __float_as_uint(y[i]) == 0xffedffedu;
  const float v = x[i];
  y[i] = judged && v > 0 ? v : 0;
}
