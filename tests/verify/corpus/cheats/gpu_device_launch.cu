// cheat: side stream: asks the driver for a launch of its own
// expect: compile-failed
// problem: relu
// warploom: kernel relu grid=12 threads=128 args=x,y
extern "C" __device__ int cudaLaunchDevice(void*, void*, dim3, dim3, unsigned, void*);

extern "C" __global__ void relu(const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 41 * 37) return;
  const float v = x[i];
  y[i] = v > 0 ? v : 0;
  if (i == 0) cudaLaunchDevice(nullptr, nullptr, dim3(1), dim3(1), 0, nullptr);
}
