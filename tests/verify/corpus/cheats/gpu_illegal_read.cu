// cheat: machine: reads where no memory is
// expect: candidate-crashed
// problem: relu
// warploom: kernel relu grid=12 threads=128 args=x,y
extern "C" __global__ void relu(const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 41 * 37) return;
  const float v = x[i];
  y[i] = v > 0 ? v : 0;
  if (i == 0) y[0] += *reinterpret_cast<const volatile float*>(0x7fff00000000ull) * 0;
}
