@SUMMARY@
//
// Every tensor is packed, row-major, in device memory, and aligned to 16 bytes:
@PARAMETERS@
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

@TYPES@
extern "C" {

// Bytes of device memory that @NAME@_launch needs as its workspace; 0: none, and it may be null.
std::size_t @NAME@_workspace_bytes(void);

// Starts the computation on `stream` and returns at once. The workspace is aligned to 256 bytes and belongs to this launch
// until it is done. Returns cudaSuccess, or the error of the first call that failed. The GPU must be @GPU@.
cudaError_t @NAME@_launch(@DECLARED@void* workspace, cudaStream_t stream);

}  // extern "C"
