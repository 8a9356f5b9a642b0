// control: a ReLU whose blocks get their part by one copy of TMA, awaited at an mbarrier
// expect: accepted
// problem: long_relu
// warploom: kernel relu grid=75 threads=128 args=x,y
// 300 x 257 elements are 75 parts of 1028, 4112 bytes each.
extern "C" __global__ void relu(const float* x, float* y) {
  __shared__ alignas(128) float part[1028];
  __shared__ unsigned long long barrier;
  const unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(&barrier));
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(part));
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(at) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 4112;" ::"r"(at) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 4112, [%2];" ::"r"(to), "l"(x + blockIdx.x * 1028), "r"(at) : "memory");
  }
  __syncthreads();
  unsigned done = 0;
  while (!done)
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(at) : "memory");
  for (int i = threadIdx.x; i < 1028; i += 128) y[blockIdx.x * 1028 + i] = part[i] > 0 ? part[i] : 0;
}
