@SUMMARY@
#include "@NAME@.h"

#include <cstring>
#include <mutex>
#include <new>

#include "pool.h"

@KERNELS@

std::size_t @NAME@_workspace_bytes(void) { return @WORKSPACE_BYTES@; }

int @NAME@_run(@DECLARED@void* workspace) {
  if (workspace == nullptr && @NAME@_workspace_bytes() > 0) return 1;
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  try {
    static wl::Pool pool;
@BODY@
  } catch (const std::bad_alloc&) {
    return 2;
  }
  return 0;
}
