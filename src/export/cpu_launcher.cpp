// The host side of a CPU bundle: device/cpu/pool.h hands out a kernel's blocks.

#include "export/parts.h"
namespace warploom::export_ {
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
  return launcher_files(frame, {{"KERNELS", kernels}, {"BODY", body}});
}
}  // namespace warploom::export_
