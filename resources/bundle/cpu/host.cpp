{{comment}}#include "{{bundle}}.h"

#include <cstring>
#include <mutex>
#include <new>

#include "pool.h"

{{#kernels}}extern "C" void {{symbol}}(void* const* buffers, long long task, void* scratch);
{{/kernels}}

// Names from the model stand in {{bundle}}_run's head alone; what is needed here begins with wl_.
namespace {
constexpr std::size_t wl_workspace_bytes = {{workspace_bytes}};

// `wl_tensors`: inputs, then outputs.
{{#prepares}}// Runs either the kernels that prepare, or the others.
{{/prepares}}int wl_run(void* const* wl_tensors, void* wl_workspace{{#prepares}},
           bool wl_preparing{{/prepares}}) {
  if (wl_workspace == nullptr && wl_workspace_bytes > 0) return 1;
  static std::mutex wl_mutex;
  const std::lock_guard<std::mutex> wl_lock(wl_mutex);
  try {
    static wl::Pool wl_pool;
{{#kernels}}    {{#prepares}}if ({{runs_when}}) {{/prepares}}{
{{#args}}{{#zeroed}}      std::memset({{address}}, 0, {{bytes}});
{{/zeroed}}{{/args}}      void* const wl_buffers[] = { {{#args}}{{address}}, {{/args}}};
      const bool wl_ran =
          wl::run_blocks(wl_pool, ::{{symbol}}, wl_buffers, {{blocks}}, {{shared_bytes}});
      if (!wl_ran) return 2;
    }
{{/kernels}}  } catch (const std::bad_alloc&) {
    return 2;
  }
  return 0;
}
}  // namespace

std::size_t {{bundle}}_workspace_bytes(void) { return wl_workspace_bytes; }

int {{bundle}}_run(
{{#inputs}}    const {{type}}* {{variable}},
{{/inputs}}{{#outputs}}    {{type}}* {{variable}},
{{/outputs}}    void* workspace) {
  void* const wl_tensors[] = {
{{#inputs}}      const_cast<{{type}}*>({{variable}}),
{{/inputs}}{{#outputs}}      {{variable}},
{{/outputs}}  };
  return wl_run(wl_tensors, workspace{{#prepares}}, false{{/prepares}});
}
{{#prepares}}
int {{bundle}}_prepare(
{{#inputs}}{{#constant}}    const {{type}}* {{variable}},
{{/constant}}{{/inputs}}    void* workspace) {
  void* const wl_tensors[] = {
{{#inputs}}{{#constant}}      const_cast<{{type}}*>({{variable}}),
{{/constant}}{{^constant}}      nullptr,
{{/constant}}{{/inputs}}{{#outputs}}      nullptr,
{{/outputs}}  };
  return wl_run(wl_tensors, workspace, true);
}
{{/prepares}}
int {{bundle}}_run_array(void* const* tensors, void* workspace) {
  return wl_run(tensors, workspace{{#prepares}}, false{{/prepares}});
}
{{#prepares}}

int {{bundle}}_prepare_array(void* const* tensors, void* workspace) {
  return wl_run(tensors, workspace, true);
}
{{/prepares}}
