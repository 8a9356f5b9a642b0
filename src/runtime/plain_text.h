// Text of the plain references: straightforward kernels that stand in where no library serves, and a second opinion where one
// does. They share nothing with emitted kernels, not even the device headers.
#pragma once

namespace warploom::runtime {

// A text is the problem's constants (vendor_plain.cpp), its engine's head, the types In, Out and Bias and `activate`, the
// functions, and the kernel.
extern const char *const kPlainCudaHead, *const kPlainCudaMatmul, *const kPlainCudaSoftmax, *const kPlainCudaEpilogue;
extern const char *const kPlainCpuHead, *const kPlainCpuMatmul, *const kPlainCpuSoftmax, *const kPlainCpuEpilogue;
inline constexpr const char* kPlainFunctions = R"(
FUNCTION float load(float x) { return x; }
FUNCTION float load(bf16 x) { return float_of(unsigned(x.bits) << 16); }
FUNCTION void store(float* p, float x) { *p = x; }
FUNCTION void store(bf16* p, float x) {
  const unsigned u = bits_of(x);
  p->bits = x != x ? 0x7fff : static_cast<unsigned short>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}
FUNCTION float biased(float x, const Bias* bias, long long batch, long long i, long long j) {
  if (kBias == 1) return x + load(bias[j]);
  if (kBias == 2) return x + load(bias[i]);
  if (kBias == 3) return x + load(bias[(batch * kM + i) * kN + j]);
  return x;
}
)";

// Tiles of the texts, of which launch shapes follow.
inline constexpr int kPlainCudaTile = 64, kPlainCudaThreads = 256;
inline constexpr int kPlainCpuRows = 48, kPlainCpuCols = 64, kPlainCpuDepth = 256;
inline constexpr long long kPlainEpilogueChunk = 1 << 14;  // elements a CPU task

}  // namespace warploom::runtime
