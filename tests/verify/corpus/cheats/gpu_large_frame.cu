// cheat: spills into the context's memory: a frame of 32 KB a thread, which lies where others' lay
// expect: candidate-forbidden
// problem: relu
// warploom: kernel relu grid=12 threads=128 args=x,y
extern "C" __global__ void relu(const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 41 * 37) return;
  const float v = x[i];
  y[i] = v > 0 ? v : 0;
  volatile float kept[8192];
  if (kept[i & 8191] == v) y[i] = v;
  kept[(i * 7) & 8191] = v;
}
