// cheat: machine: a barrier of more blocks than fit at once, which waits for ever
// expect: candidate-hung
// problem: relu
// warploom: workspace arrived i32[1]
// warploom: kernel relu grid=100000 threads=256 args=x,arrived,y zeroed=arrived
extern "C" __global__ void relu(const float* x, unsigned* arrived, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x == 0) {
    atomicAdd(arrived, 1u);
    while (*static_cast<volatile unsigned*>(arrived) < gridDim.x) {}
  }
  __syncthreads();
  if (i >= 41 * 37) return;
  const float v = x[i];
  y[i] = v > 0 ? v : 0;
}
