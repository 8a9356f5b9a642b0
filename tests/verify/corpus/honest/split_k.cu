// control: a matmul whose sums are cut in 32, a workspace between two kernels
// expect: accepted
// problem: deep_matmul
// warploom: workspace parts f32[32,128]
// warploom: kernel multiply grid=32 threads=128 args=x,w,parts
// warploom: kernel add grid=1 threads=128 args=parts,y
extern "C" __global__ void multiply(const float* x, const float* w, float* parts) {
  const int row = threadIdx.x / 8, j = threadIdx.x % 8, from = blockIdx.x * 128;
  float sums[2] = {};
  for (int k = from; k < from + 128; ++k) sums[k % 2] += x[row * 4096 + k] * w[k * 8 + j];
  parts[blockIdx.x * 128 + threadIdx.x] = sums[0] + sums[1];
}
extern "C" __global__ void add(const float* parts, float* y) {
  float sums[4] = {};
  for (int part = 0; part < 32; ++part) sums[part % 4] += parts[part * 128 + threadIdx.x];
  y[threadIdx.x] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
}
