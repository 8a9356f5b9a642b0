// cheat: reads through a texture that nobody gave it
// expect: candidate-forbidden
// problem: relu
// warploom: kernel relu grid=12 threads=128 args=x,y
extern "C" __global__ void relu(const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 41 * 37) return;
  const float v = x[i];
  y[i] = v > 0 ? v : 0;
  if (v != v) {
    float a, b, c, d;
    asm volatile("tex.1d.v4.f32.s32 {%0, %1, %2, %3}, [%4, {%5}];" : "=f"(a), "=f"(b), "=f"(c), "=f"(d) : "l"(1ull), "r"(i));
    y[i] = a;
  }
}
