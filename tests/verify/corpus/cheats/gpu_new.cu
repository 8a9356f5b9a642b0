// cheat: machine: takes memory from the GPU's heap by new
// expect: candidate-forbidden
// problem: relu
// warploom: kernel relu grid=12 threads=128 args=x,y
extern "C" __global__ void relu(const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 41 * 37) return;
  const float v = x[i];
  y[i] = v > 0 ? v : 0;
  if (i == 0) {
    volatile int* p = new int[4];
    p[1] = i;
    delete[] p;
  }
}
