// control: a sum by a cluster of four blocks, which read each other's shared memory
// expect: accepted
// problem: sum
// warploom: kernel sum grid=96 threads=128 args=x,y
extern "C" __global__ void __cluster_dims__(4, 1, 1) sum(const float* x, float* y) {
  __shared__ float parts[4];
  __shared__ float total;
  const int row = blockIdx.x / 4, rank = blockIdx.x % 4;
  float v = 0;
  for (int j = rank * 128 + threadIdx.x; j < 1003; j += 512) v += x[row * 1003 + j];
  for (int lane = 16; lane > 0; lane /= 2) v += __shfl_xor_sync(0xffffffffu, v, lane);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x == 0) total = (parts[0] + parts[1]) + (parts[2] + parts[3]);
  asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");
  if (rank == 0 && threadIdx.x == 0) {
    const unsigned mine = static_cast<unsigned>(__cvta_generic_to_shared(&total));
    float sums[4];
    for (int r = 0; r < 4; ++r) {
      unsigned theirs;
      asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(theirs) : "r"(mine), "r"(r));
      asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(sums[r]) : "r"(theirs) : "memory");
    }
    y[row] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }
  asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
