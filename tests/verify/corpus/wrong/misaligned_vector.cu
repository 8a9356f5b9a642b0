// bug: loads of four floats from rows of 37: the second row does not begin at a multiple of 16 bytes
// expect: candidate-crashed
// problem: relu
// warploom: kernel relu grid=41 threads=32 args=x,y
extern "C" __global__ void relu(const float* x, float* y) {
  const int row = blockIdx.x, j = threadIdx.x * 4;
  if (j + 4 > 37) {
    for (int i = j; i < 37; ++i) y[row * 37 + i] = fmaxf(x[row * 37 + i], 0);
    return;
  }
  const float4 v = *reinterpret_cast<const float4*>(x + row * 37 + j);
  *reinterpret_cast<float4*>(y + row * 37 + j) = {fmaxf(v.x, 0), fmaxf(v.y, 0), fmaxf(v.z, 0), fmaxf(v.w, 0)};
}
