// The host side of a CPU bundle: device/cpu/pool.h hands out a kernel's blocks.

#include "export/parts.h"
namespace warploom::export_ {
namespace {
constexpr std::string_view kHeader = R"(@SUMMARY@//
// Every tensor is packed, row-major, and aligned to 64 bytes; 16- and 8-bit floats are passed by their bits:
@PARAMETERS@#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

// Bytes of memory that @NAME@_run needs as its workspace; 0: none, and it may be null.
std::size_t @NAME@_workspace_bytes(void);

// Computes on all cores and returns when the outputs are written. The workspace is aligned to 64 bytes. Returns 0, or 1 where
// a workspace is needed and null was given, or 2 when there is no memory to be had. Calls take turns.
int @NAME@_run(@DECLARED@void* workspace);

}  // extern "C"
)";

constexpr std::string_view kSource = R"(@SUMMARY@#include "@NAME@.h"

#include <cstring>
#include <mutex>
#include <new>

#include "pool.h"

@KERNELS@
std::size_t @NAME@_workspace_bytes(void) { return @WORKSPACE_BYTES@; }

int @NAME@_run(@DECLARED@void* workspace) {
@CHECK@  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  try {
    static wl::Pool pool;
@BODY@  } catch (const std::bad_alloc&) {
    return 2;
  }
  return 0;
}
)";
}  // namespace
Result<std::vector<BundleFile>> cpu_launcher(const Frame& frame) {
  std::string kernels, body;
  for (const auto& kernel : frame.list.kernels) {
    kernels += fmt::format("extern \"C\" void {}(void* const* buffers, long long task, void* scratch);\n", kernel.name);
    std::string buffers, zeroed;
    for (const auto& arg : kernel.args) {
      WARPLOOM_TRY(const std::string address, address_of(frame, arg.buffer));
      if (arg.zeroed) zeroed += fmt::format("      std::memset({}, 0, {});\n", address, bytes_of(frame, arg.buffer));
      buffers += fmt::format("{}const_cast<void*>(static_cast<const void*>({}))", buffers.empty() ? "" : ", ", address);
    }
    body += fmt::format(
        "    {{\n{}      void* const buffers[] = {{{}}};\n      if (!wl::run_blocks(pool, {}, buffers, {}, {})) return "
        "2;\n    }}\n",
        zeroed, buffers, kernel.name, kernel.grid[0] * kernel.grid[1] * kernel.grid[2], kernel.shared_bytes);
  }
  const std::int64_t bytes = workspace_offsets(frame.list).back();
  const Values values = {{"NAME", frame.name},
                         {"SUMMARY", comment(frame.summary)},
                         {"PARAMETERS", describe_parameters(frame)},
                         {"DECLARED", declare_parameters(frame)},
                         {"KERNELS", kernels},
                         {"WORKSPACE_BYTES", std::to_string(bytes)},
                         {"CHECK", bytes > 0 ? "  if (workspace == nullptr) return 1;\n" : "  static_cast<void>(workspace);\n"},
                         {"BODY", body}};
  return std::vector<BundleFile>{{frame.name + ".h", fill_in(kHeader, values)},
                                 {frame.name + "_host.cpp", fill_in(kSource, values)}};
}
}  // namespace warploom::export_
