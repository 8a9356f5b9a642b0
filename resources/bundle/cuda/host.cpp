@SUMMARY@
#include "@NAME@.h"

@INCLUDES@

@KERNELS@

namespace {
#define TRY(call) \
  if (const cudaError_t status = (call); status != cudaSuccess) return status

@HELPERS@
cudaError_t launch(const void* kernel, dim3 grid, dim3 cluster, unsigned threads, std::size_t shared_bytes, void** args,
                   bool cooperative, bool overlaps, cudaStream_t stream) {
  if (shared_bytes > 0)
    TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes)));
  cudaLaunchAttribute attributes[3] = {};
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  const unsigned blocks = cluster.x * cluster.y * cluster.z;
  if (blocks > 1) {
    if (blocks > 8) TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    cudaLaunchAttribute& attribute = attributes[config.numAttrs++];
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = cluster.x;
    attribute.val.clusterDim.y = cluster.y;
    attribute.val.clusterDim.z = cluster.z;
  }
  if (cooperative) {
    cudaLaunchAttribute& attribute = attributes[config.numAttrs++];
    attribute.id = cudaLaunchAttributeCooperative;
    attribute.val.cooperative = 1;
  }
  if (overlaps) {
    cudaLaunchAttribute& attribute = attributes[config.numAttrs++];
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
  }
  config.attrs = attributes;
  return cudaLaunchKernelExC(&config, kernel, args);
}
}  // namespace
std::size_t @NAME@_workspace_bytes(void) { return @WORKSPACE_BYTES@; }

cudaError_t @NAME@_launch(@DECLARED@void* workspace, cudaStream_t stream) {
  if (workspace == nullptr && @NAME@_workspace_bytes() > 0) return cudaErrorInvalidValue;
@BODY@
  return cudaSuccess;
}
