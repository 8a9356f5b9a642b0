{{comment}}#include "{{bundle}}.h"{{#maps}}

#include <cuda.h>{{/maps}}

{{#kernels}}extern "C" const void* {{bundle}}_kernel_{{index}}();
{{/kernels}}

namespace {
#define WL_TRY(call) \
  if (const cudaError_t wl_status = (call); wl_status != cudaSuccess) return wl_status{{#maps}}

using Encode = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
                            const cuuint64_t*, const cuuint32_t*, const cuuint32_t*,
                            CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
                            CUtensorMapFloatOOBfill);

// Describes a tensor to the tensor memory accelerator. Dimension 0 is the fastest; strides are
// those of dimensions 1 and on.
cudaError_t encode(CUtensorMap* map, CUtensorMapDataType type, unsigned rank, const void* address,
                   const cuuint64_t* dims, const cuuint64_t* strides_bytes, const cuuint32_t* box,
                   CUtensorMapSwizzle swizzle) {
  static void* function = nullptr;
  if (function == nullptr) {
    cudaDriverEntryPointQueryResult found;
#if CUDART_VERSION >= 12050
    WL_TRY(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                            cudaEnableDefault, &found));
#else
    WL_TRY(
        cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, cudaEnableDefault, &found));
#endif
    if (found != cudaDriverEntryPointSuccess || function == nullptr) return cudaErrorNotSupported;
  }
  const cuuint32_t element_strides[5] = {1, 1, 1, 1, 1};
  const CUresult result = reinterpret_cast<Encode>(function)(
      map, type, rank, const_cast<void*>(address), dims, strides_bytes, box, element_strides,
      CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return result == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}{{/maps}}

cudaError_t launch(const void* kernel, dim3 grid, dim3 cluster, unsigned threads,
                   std::size_t shared_bytes, void** args, bool cooperative, bool overlaps,
                   cudaStream_t stream) {
  if (shared_bytes > 0)
    WL_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                static_cast<int>(shared_bytes)));
  cudaLaunchAttribute attributes[3] = {};
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  const unsigned blocks = cluster.x * cluster.y * cluster.z;
  if (blocks > 1) {
    if (blocks > 8)
      WL_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
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

constexpr std::size_t wl_workspace_bytes = {{workspace_bytes}};

// `wl_tensors`: inputs, then outputs. Names from the model stand in {{bundle}}_launch's head alone.
{{#prepares}}// Runs either the kernels that prepare, or the others.
{{/prepares}}cudaError_t wl_launch(void* const* wl_tensors, void* wl_workspace,
                      cudaStream_t wl_stream{{#prepares}}, bool wl_preparing{{/prepares}}) {
  if (wl_workspace == nullptr && wl_workspace_bytes > 0) return cudaErrorInvalidValue;
{{#kernels}}  {{#prepares}}if ({{runs_when}}) {{/prepares}}{  // {{name}}
{{#args}}{{#zeroed}}    WL_TRY(cudaMemsetAsync({{address}}, 0, {{bytes}}, wl_stream));
{{/zeroed}}{{#tensor_map}}    const cuuint64_t dims_{{index}}[] = { {{#dims}}{{.}}, {{/dims}}};
    const cuuint64_t strides_{{index}}[] = { {{#strides_bytes}}{{.}}, {{/strides_bytes}}0};
    const cuuint32_t box_{{index}}[] = { {{#box}}{{.}}, {{/box}}};
    CUtensorMap argument_{{index}};
    WL_TRY(encode(&argument_{{index}}, CU_TENSOR_MAP_DATA_TYPE_{{type}}, {{rank}}, {{address}},
                  dims_{{index}}, strides_{{index}}, box_{{index}},
                  CU_TENSOR_MAP_SWIZZLE_{{swizzle}}));
{{/tensor_map}}{{^tensor_map}}    const void* argument_{{index}} = {{address}};
{{/tensor_map}}{{/args}}    void* args[] = {
{{#args}}        const_cast<void*>(static_cast<const void*>(&argument_{{index}})),
{{/args}}    };
    const dim3 grid({{grid}});
    const dim3 cluster({{cluster}});
    WL_TRY(launch({{bundle}}_kernel_{{index}}(), grid, cluster, {{threads}}, {{shared_bytes}}, args,
                  {{cooperative}}, {{overlaps}}, wl_stream));
  }
{{/kernels}}  return cudaSuccess;
}
}  // namespace

std::size_t {{bundle}}_workspace_bytes(void) { return wl_workspace_bytes; }

cudaError_t {{bundle}}_launch(
{{#inputs}}    const {{type}}* {{variable}},
{{/inputs}}{{#outputs}}    {{type}}* {{variable}},
{{/outputs}}    void* workspace, cudaStream_t stream) {
  void* const wl_tensors[] = {
{{#inputs}}      const_cast<{{type}}*>({{variable}}),
{{/inputs}}{{#outputs}}      {{variable}},
{{/outputs}}  };
  return wl_launch(wl_tensors, workspace, stream{{#prepares}}, false{{/prepares}});
}
{{#prepares}}
cudaError_t {{bundle}}_prepare(
{{#inputs}}{{#constant}}    const {{type}}* {{variable}},
{{/constant}}{{/inputs}}    void* workspace, cudaStream_t stream) {
  void* const wl_tensors[] = {
{{#inputs}}{{#constant}}      const_cast<{{type}}*>({{variable}}),
{{/constant}}{{^constant}}      nullptr,
{{/constant}}{{/inputs}}{{#outputs}}      nullptr,
{{/outputs}}  };
  return wl_launch(wl_tensors, workspace, stream, true);
}
{{/prepares}}
cudaError_t {{bundle}}_launch_array(void* const* tensors, void* workspace, cudaStream_t stream) {
  return wl_launch(tensors, workspace, stream{{#prepares}}, false{{/prepares}});
}
{{#prepares}}

cudaError_t {{bundle}}_prepare_array(void* const* tensors, void* workspace, cudaStream_t stream) {
  return wl_launch(tensors, workspace, stream, true);
}
{{/prepares}}
