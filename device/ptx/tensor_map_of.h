// wl::TensorMapOf: a tensor as the tensor memory accelerator sees it, for a bundle's launcher.
//
//   static thread_local wl::TensorMapOf map;
//   WL_TRY(map.encode(CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, address, dims, strides, box, swizzle));
//   void* const argument = &map.value;
//
// To encode one costs as much as a part of a launch, so that it is done where the address is
// another than at the last call. It is code of the host.
#pragma once
#include <cuda.h>
#include "launching.h"

namespace wl {
using EncodeTiled = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*,
                                 const cuuint64_t*, const cuuint64_t*, const cuuint32_t*,
                                 const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle,
                                 CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

// The driver's function.
inline cudaError_t find_encoder(EncodeTiled* encoder) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
#if CUDART_VERSION >= 12050
  WL_TRY(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                          cudaEnableDefault, &found));
#else
  WL_TRY(cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, cudaEnableDefault, &found));
#endif
  if (found != cudaDriverEntryPointSuccess || function == nullptr) return cudaErrorNotSupported;
  *encoder = reinterpret_cast<EncodeTiled>(function);
  return cudaSuccess;
}

struct TensorMapOf {
  CUtensorMap value = {};
  const void* of = nullptr;  // the address that it was made for

  // Dimension 0 is the fastest; strides are those of dimensions 1 and on. All but the address is
  // the same at every call.
  cudaError_t encode(CUtensorMapDataType type, unsigned rank, const void* address,
                     const cuuint64_t* dims, const cuuint64_t* strides_bytes, const cuuint32_t* box,
                     CUtensorMapSwizzle swizzle) {
    if (address == of && of != nullptr) return cudaSuccess;
    static std::atomic<EncodeTiled> known{nullptr};
    EncodeTiled encoder = known.load(std::memory_order_acquire);
    if (encoder == nullptr) {
      WL_TRY(find_encoder(&encoder));
      known.store(encoder, std::memory_order_release);
    }
    of = nullptr;
    const cuuint32_t element_strides[5] = {1, 1, 1, 1, 1};
    const CUresult result =
        encoder(&value, type, rank, const_cast<void*>(address), dims, strides_bytes, box,
                element_strides, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (result != CUDA_SUCCESS) return cudaErrorInvalidValue;
    of = address;
    return cudaSuccess;
  }
};
}  // namespace wl
