{{comment}}#include "{{bundle}}.h"

#include "launching.h"
{{#maps}}#include "tensor_map_of.h"
{{/maps}}
{{#kernels}}extern "C" const void* {{bundle}}_kernel_{{index}}();
{{/kernels}}

namespace {
constexpr std::size_t wl_workspace_bytes = {{workspace_bytes}};

// Names from the model stand in {{bundle}}_launch's head alone; what is needed here begins with
// wl_.
{{#kernels}}wl::Kernel wl_kernel_{{index}}(&{{bundle}}_kernel_{{index}});
{{/kernels}}{{#recorded}}wl::Recordings wl_recordings;
{{/recorded}}
// Starts the kernels one by one. `wl_tensors`: inputs, then outputs.
{{#prepares}}// Either those that prepare, or the others.
{{/prepares}}cudaError_t wl_start(void* const* wl_tensors, void* wl_workspace, int wl_device,
                     cudaStream_t wl_stream{{#prepares}}, bool wl_preparing{{/prepares}}) {
{{#kernels}}  {{#prepares}}if ({{runs_when}}) {{/prepares}}{  // {{name}}
{{#args}}{{#zeroed}}    WL_TRY(cudaMemsetAsync({{address}}, 0, {{bytes}}, wl_stream));
{{/zeroed}}{{#tensor_map}}    const cuuint64_t dims_{{index}}[] = { {{#dims}}{{.}}, {{/dims}}};
    const cuuint64_t strides_{{index}}[] = { {{#strides_bytes}}{{.}}, {{/strides_bytes}}0};
    const cuuint32_t box_{{index}}[] = { {{#box}}{{.}}, {{/box}}};
    static thread_local wl::TensorMapOf map_{{index}};
    WL_TRY(map_{{index}}.encode(CU_TENSOR_MAP_DATA_TYPE_{{type}}, {{rank}}, {{address}},
                                dims_{{index}}, strides_{{index}}, box_{{index}},
                                CU_TENSOR_MAP_SWIZZLE_{{swizzle}}));
    const CUtensorMap& argument_{{index}} = map_{{index}}.value;
{{/tensor_map}}{{^tensor_map}}    const void* const argument_{{index}} = {{address}};
{{/tensor_map}}{{/args}}    void* args[] = {
{{#args}}        const_cast<void*>(static_cast<const void*>(&argument_{{index}})),
{{/args}}    };
    const wl::LaunchShape shape = {dim3({{grid}}), dim3({{cluster}}), {{threads}}, {{shared_bytes}},
                                   {{cooperative}}, {{overlaps}}};
    WL_TRY(wl_kernel_{{index}}.launch(shape, args, wl_device, wl_stream));
  }
{{/kernels}}  return cudaSuccess;
}

cudaError_t wl_launch(void* const* wl_tensors, void* wl_workspace,
                      cudaStream_t wl_stream{{#prepares}}, bool wl_preparing{{/prepares}}) {
  if (wl_workspace == nullptr && wl_workspace_bytes > 0) return cudaErrorInvalidValue;
  int wl_device = 0;
  WL_TRY(cudaGetDevice(&wl_device));
  const auto wl_start_on = [&](cudaStream_t wl_on) {
    return wl_start(wl_tensors, wl_workspace, wl_device, wl_on{{#prepares}},
                    wl_preparing{{/prepares}});
  };
{{#recorded}}{{#prepares}}  if (wl_preparing) return wl_start_on(wl_stream);
{{/prepares}}  return wl_recordings.launch(wl_device, wl_stream, wl_workspace, wl_tensors,
                              {{tensor_count}}, wl_start_on);
{{/recorded}}{{^recorded}}  return wl_start_on(wl_stream);
{{/recorded}}}
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
{{#recorded}}

void {{bundle}}_forget_graphs(void) { wl_recordings.clear(); }
{{/recorded}}
