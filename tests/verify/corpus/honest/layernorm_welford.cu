// control: a layer norm, a warp a row: Welford's means and squares put together by shuffles
// expect: accepted
// problem: layernorm
// warploom: kernel layernorm grid=29 threads=32 args=x,g,b,y
extern "C" __global__ void layernorm(const float* x, const float* g, const float* b, float* y) {
  x += blockIdx.x * 203, y += blockIdx.x * 203;
  float mean = 0, squares = 0, count = 0;
  for (int j = threadIdx.x; j < 203; j += 32) {
    const float difference = x[j] - mean;
    mean += difference / ++count;
    squares += difference * (x[j] - mean);
  }
  for (int lane = 16; lane > 0; lane /= 2) {
    const float other_mean = __shfl_xor_sync(0xffffffffu, mean, lane),
                other_squares = __shfl_xor_sync(0xffffffffu, squares, lane);
    const float other_count = __shfl_xor_sync(0xffffffffu, count, lane), all = count + other_count,
                difference = other_mean - mean;
    // Written alike from both sides, so that all lanes agree to the bit.
    mean = (mean * count + other_mean * other_count) / all;
    squares = (squares + other_squares) + difference * difference * (count * other_count) / all;
    count = all;
  }
  const float scale = 1 / sqrtf(squares / 203 + 1e-5f);
  for (int j = threadIdx.x; j < 203; j += 32) y[j] = (x[j] - mean) * scale * g[j] + b[j];
}
