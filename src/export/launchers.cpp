// The host side. Of a CUDA bundle: plain C++ on the CUDA runtime. Only cuTensorMapEncodeTiled is a driver call; it is asked for
// through the runtime, so that nothing links with libcuda. Of a CPU bundle: device/cpu/pool.h hands out a kernel's blocks.

#include "export/parts.h"
#include "runtime/type_codes.h"
namespace warploom::export_ {
namespace {
std::string list_of(const std::vector<std::int64_t>& numbers) { return fmt::format("{{{}}}", fmt::join(numbers, ", ")); }

std::string dim3_of(const std::array<std::int64_t, 3>& extent) {
  return fmt::format("dim3({}, {}, {})", extent[0], extent[1], extent[2]);
}

// One block of the launcher's body: arguments, then the launch.
Result<std::string> launch_text(const Frame& frame, std::size_t index) {
  const Kernel& kernel = frame.list.kernels[index];
  std::string text = fmt::format("  {{  // {}\n", kernel.name), args;
  for (std::size_t i = 0; i < kernel.args.size(); ++i) {
    const Argument& arg = kernel.args[i];
    WARPLOOM_TRY(const std::string address, address_of(frame, arg.buffer));
    if (arg.zeroed) text += fmt::format("    TRY(cudaMemsetAsync({}, 0, {}, stream));\n", address, bytes_of(frame, arg.buffer));
    if (arg.tensor_map) {
      const TensorMapSpec& map = arg.map;
      const std::vector<std::int64_t> strides = map.strides_bytes.empty() ? std::vector<std::int64_t>{0} : map.strides_bytes;
      text += fmt::format(
          "    const cuuint64_t dims_{0}[] = {1}, strides_{0}[] = {2};\n"
          "    const cuuint32_t box_{0}[] = {3};\n    CUtensorMap argument_{0};\n"
          "    TRY(encode(&argument_{0}, CU_TENSOR_MAP_DATA_TYPE_{4}, {5}, {6}, dims_{0}, strides_{0}, box_{0}, "
          "CU_TENSOR_MAP_SWIZZLE_{7}));\n",
          i, list_of(map.dims), list_of(strides), list_of(map.box), runtime::codes_of(map.dtype).map_name, map.dims.size(),
          address, map.swizzle_bytes == 0 ? "NONE" : fmt::format("{}B", map.swizzle_bytes));
    } else {
      text += fmt::format("    const void* argument_{} = {};\n", i, address);
    }
    args += fmt::format("{}{}&argument_{}", i ? ", " : "", arg.tensor_map ? "" : "const_cast<void**>(", i) +
            (arg.tensor_map ? "" : ")");
  }
  text +=
      fmt::format("    void* args[] = {{{}}};\n    TRY(launch({}_kernel_{}(), {}, {}, {}, {}, args, {}, {}, stream));\n  }}\n",
                  args, frame.name, index, dim3_of(kernel.grid), dim3_of(kernel.cluster), kernel.threads, kernel.shared_bytes,
                  kernel.cooperative, kernel.overlaps && index > 0);
  return text;
}

// Pointers need only the names of CUDA's small types.
std::string forward_types(const Frame& frame) {
  std::string text;
  for (const auto& parameter : frame.parameters)
    if (parameter.type.starts_with("__") && text.find(parameter.type + ";") == std::string::npos)
      text += fmt::format("struct {};\n", parameter.type);
  return text.empty() ? "" : text + "\n";
}
}  // namespace
Result<std::vector<BundleFile>> cuda_launcher(const Frame& frame) {
  bool maps = false;
  std::string kernels, body;
  for (std::size_t i = 0; i < frame.list.kernels.size(); ++i) {
    for (const auto& arg : frame.list.kernels[i].args) maps |= arg.tensor_map;
    kernels += fmt::format("extern \"C\" const void* {}_kernel_{}();\n", frame.name, i);
    WARPLOOM_TRY(const std::string text, launch_text(frame, i));
    body += text;
  }
  return launcher_files(frame, {{"TYPES", forward_types(frame)},
                                {"GPU", "an " + frame.list.arch},
                                {"INCLUDES", maps ? "#include <cuda.h>\n" : ""},
                                {"KERNELS", kernels},
                                {"HELPERS", maps ? engine_resource(frame.list, "tensor_maps.cpp") + "\n" : ""},
                                {"BODY", body}});
}

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
