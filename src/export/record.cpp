#include <regex>
#include "base/hash.h"
#include "export/parts.h"
#include "runtime/compilers.h"
#include "runtime/type_codes.h"
#include "tile/verify.h"
namespace warploom::export_ {
namespace {
using nlohmann::json;

// 16- and 8-bit floats by CUDA's own names on the GPU, by their bits on the CPU.
std::string parameter_type(Dtype dtype, bool gpu) {
  const int bits = bits_of(dtype);
  if (!is_float(dtype) || bits > 16) return std::string(cpu_type(dtype));
  if (!gpu) return fmt::format("std::uint{}_t", bits);
  return bits == 8 ? fmt::format("__nv_fp8_{}", name_of(dtype)) : dtype == Dtype::bf16 ? "__nv_bfloat16" : "__half";
}

// Those the kernels were judged with, less what makes them a shared library.
std::string cpu_flags() {
  std::vector<std::string> flags = runtime::kCpuCompileFlags;
  std::erase_if(flags, [](const std::string& flag) { return flag == "-shared" || flag == "-fPIC" || flag.starts_with("-std="); });
  return fmt::format("{}", fmt::join(flags, " "));
}

// How the launcher spells a buffer's address, and how many bytes lie there.
struct Place {
  std::string address;
  std::int64_t bytes;
};
}  // namespace
json record_of(const BundleInfo& info, const LaunchList& list) {
  const bool gpu = list.engine == Engine::cuda;
  std::vector<std::string> taken;
  const std::string name = identifier(info.name, taken);
  json record = {{"bundle", name},
                 {"summary", info.summary},
                 {"comment", comment(info.summary)},
                 {"gpu", gpu},
                 {"engine", gpu ? "ptx" : "cpu"},
                 {"engine_text", resource(gpu ? "bundle/cuda/engine.cpp" : "bundle/cpu/engine.cpp")},
                 {"gpu_arch", gpu ? list.arch : ""},
                 {"arch_number", list.arch.starts_with("sm_") ? list.arch.substr(3) : list.arch},
                 {"cpu_flags", cpu_flags()},
                 {"cflags", gpu ? "-O2" : "-std=c++20 -pthread " + cpu_flags()},
                 {"kernel_file", name + (gpu ? ".cu" : "_kernels.cpp")},
                 {"result", list.outputs.size() == 1 ? "y" : "outputs"},
                 {"kernels", to_json(list)["kernels"]}};
  taken.clear();
  std::map<std::string, Place> places;
  std::set<std::string> types;  // of which pointers need only the names
  for (const auto& [key, buffers] : {std::pair("inputs", &list.inputs), std::pair("outputs", &list.outputs)})
    for (const BufferSpec& buffer : *buffers) {
      const std::string type = parameter_type(buffer.dtype, gpu), variable = identifier(buffer.name, taken);
      record[key].push_back({{"index", taken.size() - 1},
                             {"name", buffer.name},
                             {"variable", variable},
                             {"type", type},
                             {"dtype", name_of(buffer.dtype)},
                             {"shape", buffer.shape},
                             {"elements", buffer.elements()},
                             {"text", fmt::format("{} {}", name_of(buffer.dtype), graph::to_text(buffer.shape))}});
      places.emplace(buffer.name, Place{variable, buffer.bytes()});
      if (type.starts_with("__")) types.insert(type);
    }
  record["types"] = types;
  std::int64_t offset = 0;  // of each workspace in the one that the caller passes: bytes, multiples of 256
  for (const BufferSpec& workspace : list.workspaces) {
    places.emplace(workspace.name, Place{fmt::format("static_cast<char*>(workspace) + {}", offset), workspace.bytes()});
    offset += (workspace.bytes() + 255) / 256 * 256;
  }
  record["workspace_bytes"] = offset;
  std::string sources;
  for (std::size_t k = 0; k < list.kernels.size(); ++k) {
    const Kernel& kernel = list.kernels[k];
    sources += kernel.source;
    json& row = record["kernels"][k];
    row.erase("source");
    row.update({{"index", k},
                {"grid", fmt::format("{}", fmt::join(kernel.grid, ", "))},
                {"cluster", fmt::format("{}", fmt::join(kernel.cluster, ", "))},
                {"blocks", kernel.grid[0] * kernel.grid[1] * kernel.grid[2]},
                {"cooperative", int{kernel.cooperative}},
                {"overlaps", int{kernel.overlaps && k > 0}}});
    for (std::size_t i = 0; i < kernel.args.size(); ++i) {
      const Argument& arg = kernel.args[i];
      const Place& place = places.at(arg.buffer);
      row["args"][i].update({{"index", i}, {"address", place.address}, {"bytes", place.bytes}});
      if (!arg.tensor_map) continue;
      record["maps"] = true;
      const std::int64_t swizzle = arg.map.swizzle_bytes;
      row["args"][i]["tensor_map"].update({{"type", runtime::codes_of(arg.map.dtype).map_name},
                                           {"rank", arg.map.dims.size()},
                                           {"swizzle", swizzle == 0 ? "NONE" : fmt::format("{}B", swizzle)}});
    }
  }
  record["hash"] = hash_hex(sources).substr(0, 8);
  return record;
}
std::string identifier(std::string_view name, std::vector<std::string>& taken) {
  std::string base;
  for (const char c : name) base += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  if (!tile::is_identifier(base) || base == "stream" || base == "workspace") base.insert(base.begin(), '_');
  std::string chosen = base;
  for (int n = 2; std::ranges::find(taken, chosen) != taken.end(); ++n) chosen = fmt::format("{}_{}", base, n);
  taken.push_back(chosen);
  return chosen;
}

std::string comment(std::string_view text) {
  static const std::regex line("(\\S{97,}|\\S.{0,96})(?:\\s+|$)");  // as many words as fit, or a longer one
  return std::regex_replace(std::string(text), line, "// $1\n");
}
}  // namespace warploom::export_
