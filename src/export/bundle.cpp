#include "export/bundle.h"
#include <regex>
#include "base/file.h"
#include "base/hash.h"
#include "runtime/compilers.h"
#include "runtime/type_codes.h"
#include "tile/verify.h"
namespace warploom::export_ {
namespace fs = std::filesystem;
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

// What the texts of resources/bundle name:
//   bundle, summary, comment, gpu, engine, arch, …   of the whole
//   inputs, outputs   {index, name, variable, type, dtype, shape, …}: the launcher's parameters, `type` what they point to
//   kernels           as in the launch list; arguments with their address as the launcher spells it ("C", "bytes + 4096")
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
    offset += round_up(workspace.bytes(), 256);
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
                {"overlaps", int{kernel.overlaps}}});
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

// Lines as `#include "name"` or `#include <name>`, and the name.
const std::regex kInclude("^[ \\t]*#include\\s*[\"<]([^\">]+)[\">].*\\n", std::regex::ECMAScript | std::regex::multiline);
using Includes = std::sregex_iterator;

// Several texts in one file: includes first, once; then each text in a namespace of its own, so that their constants and
// helpers cannot meet. Kernels keep C linkage and so their names.
std::string joined(const std::vector<std::string>& texts) {
  std::string head, body;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    for (Includes line(texts[i].begin(), texts[i].end(), kInclude), end; line != end; ++line)
      if (seen.insert(line->str()).second) head += line->str();
    body += fmt::format("\nnamespace part_{0} {{\n{1}}}  // namespace part_{0}\n", i, std::regex_replace(texts[i], kInclude, ""));
  }
  return head + body;
}

// Kernels of one text stay one text; several texts each get a namespace, their includes in front. Adds kernel_text, and to every kernel
// `part`, the namespace it is in.
void add_kernel_text(nlohmann::json& record, const LaunchList& list) {
  std::vector<std::string> texts;  // each once
  for (const Kernel& kernel : list.kernels)
    if (std::ranges::find(texts, kernel.source) == texts.end()) texts.push_back(kernel.source);
  const bool several = texts.size() > 1;
  record["kernel_text"] = several ? joined(texts) : texts[0];
  for (std::size_t i = 0; i < list.kernels.size(); ++i) {
    const auto part = std::ranges::find(texts, list.kernels[i].source) - texts.begin();
    record["kernels"][i]["part"] = several ? fmt::format("part_{}::", part) : "";
  }
}

// The device headers that the bundle's files include, directly or through others.
std::vector<BundleFile> device_files(const LaunchList& list, const std::vector<BundleFile>& files) {
  const std::string folder = list.engine == Engine::cuda ? "ptx/" : "cpu/";
  std::vector<BundleFile> found;
  std::set<std::string> seen;
  const std::function<void(const std::string&)> look = [&](const std::string& text) {
    for (Includes line(text.begin(), text.end(), kInclude), end; line != end; ++line) {
      const std::string name = (*line)[1];
      for (const auto& header : device_headers()) {
        if ((header.path != folder + name && header.path != "common/" + name) || !seen.insert(header.path).second) continue;
        found.push_back({"device/" + header.path, header.text});
        look(header.text);
      }
    }
  };
  for (const BundleFile& file : files) look(file.text);
  return found;
}
}  // namespace
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

Status write_bundle(const fs::path& folder, const BundleInfo& info, const LaunchList& list, const graph::Graph& graph) {
  nlohmann::json record = record_of(info, list);
  WARPLOOM_TRY(std::vector<BundleFile> files, check_data(record, list, graph, info.tolerance, info.seed));
  add_kernel_text(record, list);
  const std::string engine = list.engine == Engine::cuda ? "cuda/" : "cpu/";
  const std::pair<const char*, std::string> kTexts[] = {
      {"{{kernel_file}}", "kernels.cpp"}, {"{{bundle}}.h", engine + "host.h"}, {"{{bundle}}_host.cpp", engine + "host.cpp"},
      {"check/check.cpp", "check.cpp"},   {"Makefile", engine + "Makefile"},   {"{{bundle}}.py", "module.py"},
      {"README.md", "README.md"}};
  for (const auto& [path, text] : kTexts) files.push_back({rendered(path, record), rendered(resource("bundle/" + text), record)});
  std::ranges::move(device_files(list, files), std::back_inserter(files));
  nlohmann::json plan = info.plan.is_object() ? info.plan : nlohmann::json::object();
  plan.update({{"name", record["bundle"]},
               {"summary", info.summary},
               {"tolerance", info.tolerance},
               {"check_seed", info.seed},
               {"launch_list", to_json(list)},
               {"constants", nlohmann::json::object()}});  // the files of those inputs that the model itself holds
  for (const auto& input : record["inputs"])
    if (input["held"]) plan["constants"][input["name"].get<std::string>()] = "check/" + input["stored"].get<std::string>();
  files.push_back({"plan.json", plan.dump(2) + "\n"});  // last: its presence says that the bundle is whole

  WARPLOOM_CHECK(make_folders(folder));
  // What an earlier bundle left goes; a folder with files and no plan.json is somebody else's and stays as it is.
  std::error_code ignored;
  if (fs::exists(folder / "plan.json", ignored))
    for (const char* part : {"plan.json", "device", "check", "build", "Makefile", "README.md"})
      fs::remove_all(folder / part, ignored);
  for (const auto& file : files) {
    const fs::path path = folder / file.path;
    WARPLOOM_CHECK(make_folders(path.parent_path()));
    WARPLOOM_CHECK(write_file(path, file.text));
  }
  return ok();
}
}  // namespace warploom::export_
