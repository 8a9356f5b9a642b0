// cheat: text patching: takes its own address, where code lies that could be changed
// expect: candidate-forbidden
// problem: relu
// warploom: kernel relu grid=12 threads=128 args=x,y
extern "C" __global__ void relu(const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 41 * 37) return;
  const float v = x[i];
  y[i] = v > 0 ? v : 0;
  unsigned long long code;
  asm volatile("mov.u64 %0, relu;" : "=l"(code));
  if (*reinterpret_cast<unsigned*>(code) == 12345) y[i] = 1;
}
