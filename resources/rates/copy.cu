// A plain copy of 16-byte vectors: what memory gives and takes (runtime/rates.cpp). VECTORS, of a
// thread, and STREAMED, whether the caches are told that nobody reads them again, are defined in
// front of this text.
extern "C" __global__ void __launch_bounds__(256) copy_rate(const uint4* from, uint4* to) {
  const long long first = static_cast<long long>(blockIdx.x) * (256 * VECTORS) + threadIdx.x;
  uint4 held[VECTORS];
#pragma unroll
  for (int i = 0; i < VECTORS; ++i)
    held[i] = STREAMED ? __ldcs(from + first + 256 * i) : from[first + 256 * i];
#pragma unroll
  for (int i = 0; i < VECTORS; ++i) {
    if (STREAMED)
      __stcs(to + first + 256 * i, held[i]);
    else
      to[first + 256 * i] = held[i];
  }
}
