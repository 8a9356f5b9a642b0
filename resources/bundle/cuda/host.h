{{comment}}//
// Every tensor is packed, row-major, in device memory, and aligned to 16 bytes:
{{#inputs}}//   {{variable}}: input{{#renamed}} {{called}}{{/renamed}}, {{text}}
{{/inputs}}{{#outputs}}//   {{variable}}: output{{#renamed}} {{called}}{{/renamed}}, {{text}}
{{/outputs}}#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

{{#types}}struct {{.}};

{{/types}}extern "C" {

// Bytes of device memory that {{bundle}}_launch needs as its workspace; 0: none, and it may be
// null.
std::size_t {{bundle}}_workspace_bytes(void);

// Starts the computation on `stream` and returns at once. The workspace is aligned to 256 bytes and
// belongs to this launch until it is done. Returns cudaSuccess, or the error of the first call that
// failed. The GPU must be an {{gpu_arch}}.
{{#recorded}}//
// A call starts {{starts}} kernels. Calls with the same tensors, workspace, stream and device are
// recorded as a CUDA graph, which starts them all at the price of one or two: the fourth call
// records, and the eight sets of addresses that were used last are remembered. What lies at the
// addresses may change. While `stream` is captured the kernels become a part of the caller's graph.
// {{bundle}}_forget_graphs gives the graphs back; it comes before cudaDeviceReset().
{{/recorded}}{{#prepares}}//
// Before the first call, and again once a constant input has changed: {{bundle}}_prepare with the
// same workspace, which then holds {{prepared_bytes}} bytes that every call reads. Nothing else may
// write it in between, and no two calls may share it at the same time.
// Constant inputs: {{constant_names}}.
{{/prepares}}cudaError_t {{bundle}}_launch(
{{#inputs}}    const {{type}}* {{variable}},
{{/inputs}}{{#outputs}}    {{type}}* {{variable}},
{{/outputs}}    void* workspace, cudaStream_t stream);

{{#prepares}}cudaError_t {{bundle}}_prepare(
{{#inputs}}{{#constant}}    const {{type}}* {{variable}},
{{/constant}}{{/inputs}}    void* workspace, cudaStream_t stream);

{{/prepares}}// The same, with the tensors as an array: inputs, then outputs.
cudaError_t {{bundle}}_launch_array(void* const* tensors, void* workspace, cudaStream_t stream);
{{#prepares}}cudaError_t {{bundle}}_prepare_array(void* const* tensors, void* workspace,
                                         cudaStream_t stream);
{{/prepares}}{{#recorded}}
void {{bundle}}_forget_graphs(void);
{{/recorded}}}  // extern "C"
