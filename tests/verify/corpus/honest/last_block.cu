// control: a matmul whose sums are cut in 32; the block that comes last adds them in their order
// expect: accepted
// problem: deep_matmul
// warploom: workspace parts f32[32,128]
// warploom: workspace arrived i32[1]
// warploom: kernel matmul grid=32 threads=128 args=x,w,parts,arrived,y zeroed=arrived
extern "C" __global__ void matmul(const float* x, const float* w, float* parts, unsigned* arrived, float* y) {
  __shared__ unsigned before;
  const int row = threadIdx.x / 8, j = threadIdx.x % 8, from = blockIdx.x * 128;
  float sums[2] = {};
  for (int k = from; k < from + 128; ++k) sums[k % 2] += x[row * 4096 + k] * w[k * 8 + j];
  parts[blockIdx.x * 128 + threadIdx.x] = sums[0] + sums[1];
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) before = atomicAdd(arrived, 1u);
  __syncthreads();
  if (before != 31) return;
  __threadfence();
  float all[4] = {};
  for (int part = 0; part < 32; ++part) all[part % 4] += static_cast<volatile float*>(parts)[part * 128 + threadIdx.x];
  y[threadIdx.x] = (all[0] + all[1]) + (all[2] + all[3]);
}
