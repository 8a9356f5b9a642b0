// Text of the plain references: straightforward kernels that stand in where no library serves, and a second opinion where one
// does. They share nothing with emitted kernels, not even the device headers.
#pragma once

#include <string>

namespace warploom::runtime {

extern const char* const kPlainCudaHead;    // element types and their conversions
extern const char* const kPlainCudaMatmul;  // constants first: see plain_constants in vendor_plain.cpp
extern const char* const kPlainCudaSoftmax;
extern const char* const kPlainCudaEpilogue;
extern const char* const kPlainCpuHead;
extern const char* const kPlainCpuMatmul;
extern const char* const kPlainCpuSoftmax;
extern const char* const kPlainCpuEpilogue;

// Tiles of the texts, of which launch shapes follow.
inline constexpr int kPlainCudaTile = 64, kPlainCudaThreads = 256;
inline constexpr int kPlainCpuRows = 48, kPlainCpuCols = 64, kPlainCpuDepth = 256;
inline constexpr long long kPlainEpilogueChunk = 1 << 14;  // elements a CPU task

}  // namespace warploom::runtime
