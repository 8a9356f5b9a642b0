// Plain loops (runtime/rates.cpp). TURNS is defined in front of this text.

// A copy of 16-byte vectors, so many a thread: what memory gives and takes. Whose accesses are
// streamed tells the caches that nobody reads the lines again.
#define COPY(name, vectors, load, store)                                                         \
  extern "C" __global__ void __launch_bounds__(256) name(const uint4* from, uint4* to) {         \
    const long long first = static_cast<long long>(blockIdx.x) * (256 * vectors) + threadIdx.x; \
    uint4 held[vectors];                                                                         \
    _Pragma("unroll") for (int i = 0; i < vectors; ++i) held[i] = load(from + first + 256 * i);  \
    _Pragma("unroll") for (int i = 0; i < vectors; ++i) store(to + first + 256 * i, held[i]);    \
  }

__device__ inline uint4 loaded(const uint4* p) {
  return *p;
}

__device__ inline void stored(uint4* p, uint4 x) {
  *p = x;
}

COPY(copy_1, 1, loaded, stored)
COPY(copy_4, 4, loaded, stored)
COPY(copy_1_streamed, 1, __ldcs, __stcs)
COPY(copy_4_streamed, 4, __ldcs, __stcs)

// Multiplications and additions of fp32 in registers alone: sixteen chains a thread, which hide
// each other's latency.
extern "C" __global__ void __launch_bounds__(256) fma_rate(const float* from, float* to) {
  constexpr int kChains = 16;
  float sums[kChains];
#pragma unroll
  for (int i = 0; i < kChains; ++i) sums[i] = from[i];
  const float a = from[threadIdx.x];
  const float b = from[threadIdx.x + 1];
#pragma unroll 1
  for (int turn = 0; turn < TURNS; ++turn) {
#pragma unroll
    for (int step = 0; step < 8; ++step) {
#pragma unroll
      for (int i = 0; i < kChains; ++i) sums[i] = fmaf(sums[i], a, b);
    }
  }
  float all = 0;
#pragma unroll
  for (int i = 0; i < kChains; ++i) all += sums[i];
  if (all == 12345.0f) to[0] = all;  // which no compiler can know
}
