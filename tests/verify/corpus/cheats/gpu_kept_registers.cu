// cheat: no-op reading freed memory: copies what an earlier kernel left in registers
// expect: candidate-wrong
// problem: softmax
// warploom: kernel softmax grid=33 threads=128 args=x,y
extern "C" __global__ void softmax(const float*, float* y) {
  for (int j = threadIdx.x; j < 203; j += 128) {
    float v;
    asm volatile("{ .reg .f32 kept; mov.f32 %0, kept; }" : "=f"(v));
    y[blockIdx.x * 203 + j] = v > 0 && v < 1 ? v : 1.0f / 203;
  }
}
