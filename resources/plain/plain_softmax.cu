// Two passes: greatest and sum together, then the quotients. A row's sum counts from its own greatest so far.
struct Part { float greatest, sum; };
FUNCTION Part join(Part p, Part q) {
  const float g = p.greatest > q.greatest || p.greatest != p.greatest ? p.greatest : q.greatest;
  if (p.sum == 0.0f) return q;
  if (q.sum == 0.0f) return p;
  return {g, p.sum * expf(p.greatest - g) + q.sum * expf(q.greatest - g)};
}
extern "C" __global__ void __launch_bounds__(256) plain_softmax(const In* x, Out* y) {
  __shared__ Part parts[8];
  x += blockIdx.x * kN;
  y += blockIdx.x * kN;
  Part part = {-1.0f / 0.0f, 0.0f};
  for (long long j = threadIdx.x; j < kN; j += 256) {
    const float v = load(x[j]);
    if (v > part.greatest) {
      part.sum = part.sum * expf(part.greatest - v) + 1.0f;
      part.greatest = v;
    } else {
      part.sum += v == part.greatest ? 1.0f : expf(v - part.greatest);
    }
  }
  for (int step = 16; step > 0; step /= 2)
    part = join(part, {__shfl_xor_sync(~0u, part.greatest, step), __shfl_xor_sync(~0u, part.sum, step)});
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = part;
  __syncthreads();
  part = parts[0];
  for (int warp = 1; warp < 8; ++warp) part = join(part, parts[warp]);
  const float scale = 1.0f / part.sum;
  for (long long j = threadIdx.x; j < kN; j += 256) store(y + j, expf(load(x[j]) - part.greatest) * scale);
}
