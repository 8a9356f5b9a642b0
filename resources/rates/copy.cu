// A plain copy of 16-byte vectors, eight a thread: what memory gives and takes (runtime/rates.cpp).
struct alignas(16) Vector {
  unsigned words[4];
};

extern "C" __global__ void __launch_bounds__(256) copy_rate(const Vector* from, Vector* to) {
  constexpr int kVectors = 8;
  const long long first = static_cast<long long>(blockIdx.x) * (256 * kVectors) + threadIdx.x;
  Vector held[kVectors];
#pragma unroll
  for (int i = 0; i < kVectors; ++i) held[i] = from[first + 256 * i];
#pragma unroll
  for (int i = 0; i < kVectors; ++i) to[first + 256 * i] = held[i];
}
