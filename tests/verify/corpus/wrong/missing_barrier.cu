// bug: a race: the sums of a block are added up in shared memory without barriers between the steps
// expect: candidate-wrong
// problem: sum
// warploom: kernel sum grid=24 threads=1024 args=x,y
extern "C" __global__ void sum(const float* x, float* y) {
  __shared__ volatile float parts[1024];
  const int t = threadIdx.x;
  parts[t] = t < 1003 ? x[blockIdx.x * 1003 + t] : 0;
  for (int half = 512; half > 0; half /= 2)
    if (t < half) parts[t] = parts[t] + parts[t + half];
  if (t == 0) y[blockIdx.x] = parts[0];
}
