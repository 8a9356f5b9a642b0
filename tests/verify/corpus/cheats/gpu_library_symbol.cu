// cheat: library call as kernel: a function that is not in the text
// expect: compile-failed
// problem: relu
// warploom: kernel relu grid=12 threads=128 args=x,y
extern "C" __device__ void cublas_device_gemm(const float*, float*);

extern "C" __global__ void relu(const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 41 * 37) return;
  const float v = x[i];
  y[i] = v > 0 ? v : 0;
  if (i == 0) cublas_device_gemm(x, y);
}
