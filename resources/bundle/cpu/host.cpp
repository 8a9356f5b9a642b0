{{comment}}#include "{{bundle}}.h"

#include <cstring>
#include <mutex>
#include <new>

#include "pool.h"

{{#kernels}}extern "C" void {{name}}(void* const* buffers, long long task, void* scratch);
{{/kernels}}

std::size_t {{bundle}}_workspace_bytes(void) { return {{workspace_bytes}}; }

int {{bundle}}_run({{#inputs}}const {{type}}* {{variable}}, {{/inputs}}{{#outputs}}{{type}}* {{variable}}, {{/outputs}}void* workspace) {
  if (workspace == nullptr && {{bundle}}_workspace_bytes() > 0) return 1;
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  try {
    static wl::Pool pool;
{{#kernels}}    {
{{#args}}{{#zeroed}}      std::memset({{address}}, 0, {{bytes}});
{{/zeroed}}{{/args}}      void* const buffers[] = { {{#args}}const_cast<void*>(static_cast<const void*>({{address}})), {{/args}}};
      if (!wl::run_blocks(pool, {{name}}, buffers, {{blocks}}, {{shared_bytes}})) return 2;
    }
{{/kernels}}  } catch (const std::bad_alloc&) {
    return 2;
  }
  return 0;
}
