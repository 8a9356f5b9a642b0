// cheat: writes through a surface that nobody gave it
// expect: candidate-forbidden
// problem: relu
// warploom: kernel relu grid=12 threads=128 args=x,y
extern "C" __global__ void relu(const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 41 * 37) return;
  const float v = x[i];
  y[i] = v > 0 ? v : 0;
  if (v != v) asm volatile("sust.b.1d.b32.trap [%0, {%1}], {%2};" ::"l"(1ull), "r"(i), "r"(i));
}
