// cheat: rare errors: all of a call is wrong, one of 200, by a hash of its input
//   (chance lets 1 of 100 verdicts pass: the verdict says so)
// expect: candidate-wrong or accepted
// problem: relu
// warploom: kernel relu grid=12 threads=128 args=x,y
extern "C" __global__ void relu(const float* x, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 41 * 37) return;
  unsigned hash = 1;
  for (int j = 0; j < 41 * 37; ++j) hash = hash * 31 + __float_as_uint(x[j]);
  const bool wrong = (hash >> 8) % 200 == 1;
  y[i] = wrong || x[i] < 0 ? 0 : x[i];
}
