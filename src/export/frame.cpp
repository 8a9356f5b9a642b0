#include <cctype>
#include "base/hash.h"
#include "export/parts.h"
#include "runtime/compilers.h"
#include "tile/verify.h"
namespace warploom::export_ {
namespace {
// 16- and 8-bit floats by CUDA's own names on the GPU, by their bits on the CPU.
std::string parameter_type(Dtype dtype, bool gpu) {
  switch (dtype) {
    case Dtype::bf16: return gpu ? "__nv_bfloat16" : "std::uint16_t";
    case Dtype::f16: return gpu ? "__half" : "std::uint16_t";
    case Dtype::e4m3: return gpu ? "__nv_fp8_e4m3" : "std::uint8_t";
    case Dtype::e5m2: return gpu ? "__nv_fp8_e5m2" : "std::uint8_t";
    case Dtype::tf32: return "float";
    default: return std::string(cpu_type(dtype));
  }
}

// Where each workspace lies in the one workspace the caller passes: bytes, multiples of 256; last comes the sum.
std::vector<std::int64_t> workspace_offsets(const LaunchList& list) {
  std::vector<std::int64_t> offsets = {0};
  for (const auto& workspace : list.workspaces) offsets.push_back(offsets.back() + (workspace.bytes() + 255) / 256 * 256);
  return offsets;
}

// Those the kernels were judged with, less what makes them a shared library.
std::string cpu_flags() {
  std::string text;
  for (const std::string_view flag : runtime::cpu_compile_flags())
    if (flag != "-shared" && flag != "-fPIC" && !flag.starts_with("-std=")) text += (text.empty() ? "" : " ") + std::string(flag);
  return text;
}
}  // namespace
std::string fill_in(std::string_view text, const Values& values) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t open = text.find('@', at);
    out += text.substr(at, open - at);
    if (open == std::string_view::npos) break;
    const std::size_t close = text.find('@', open + 1);
    const std::string_view name = close == std::string_view::npos ? "" : text.substr(open + 1, close - open - 1);
    const auto value = std::ranges::find(values, name, &Values::value_type::first);
    if (name.empty() || value == values.end()) {
      out += '@';
      at = open + 1;
    } else {
      out += value->second;
      at = close + 1;
      const bool line = (open == 0 || text[open - 1] == '\n') && at < text.size() && text[at] == '\n';
      if (line && (value->second.empty() || value->second.ends_with('\n'))) ++at;
    }
  }
  return out;
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
  std::string out, line = "//";
  const auto flush = [&] {
    out += line + "\n";
    line = "//";
  };
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = std::min(text.find_first_of(" \n", at), text.size());
    const std::string_view word = text.substr(at, end - at);
    if (line.size() + 1 + word.size() > 100 && line.size() > 2) flush();
    if (!word.empty()) line += " " + std::string(word);
    if (end < text.size() && text[end] == '\n') flush();
    at = end + 1;
  }
  if (line.size() > 2) flush();
  return out;
}

bool on_gpu(const LaunchList& list) { return list.engine == Engine::cuda; }

const std::string& engine_resource(const LaunchList& list, const std::string& file) {
  return resource((on_gpu(list) ? "bundle/cuda/" : "bundle/cpu/") + file);
}

Frame make_frame(const std::string& name, const std::string& summary, const LaunchList& list) {
  Frame frame{name, summary, list, {}};
  std::vector<std::string> taken;
  const auto add = [&](const std::vector<BufferSpec>& buffers, bool input) {
    for (const auto& buffer : buffers)
      frame.parameters.push_back({buffer, identifier(buffer.name, taken), parameter_type(buffer.dtype, on_gpu(list)), input});
  };
  add(list.inputs, true);
  add(list.outputs, false);
  return frame;
}

std::int64_t bytes_of(const Frame& frame, const std::string& buffer) {
  for (const auto* specs : {&frame.list.inputs, &frame.list.outputs, &frame.list.workspaces})
    for (const BufferSpec& spec : *specs)
      if (spec.name == buffer) return spec.bytes();
  return 0;
}

std::vector<BundleFile> launcher_files(const Frame& frame, Values values) {
  std::string described, declared;
  for (const Parameter& parameter : frame.parameters) {
    described += fmt::format("//   {:<12} {}, {} {}\n", parameter.variable, parameter.input ? "input" : "output",
                             name_of(parameter.buffer.dtype), graph::to_text(parameter.buffer.shape));
    declared += fmt::format("{}{}* {}, ", parameter.input ? "const " : "", parameter.type, parameter.variable);
  }
  values.insert(values.end(), {{"NAME", frame.name},
                               {"SUMMARY", comment(frame.summary)},
                               {"PARAMETERS", described},
                               {"DECLARED", declared},
                               {"WORKSPACE_BYTES", std::to_string(workspace_offsets(frame.list).back())}});
  return {{frame.name + ".h", fill_in(engine_resource(frame.list, "host.h"), values)},
          {frame.name + "_host.cpp", fill_in(engine_resource(frame.list, "host.cpp"), values)}};
}

Result<std::string> address_of(const Frame& frame, const std::string& buffer) {
  for (const auto& parameter : frame.parameters)
    if (parameter.buffer.name == buffer) return parameter.variable;
  const auto offsets = workspace_offsets(frame.list);
  for (std::size_t i = 0; i < frame.list.workspaces.size(); ++i)
    if (frame.list.workspaces[i].name == buffer) return fmt::format("static_cast<char*>(workspace) + {}", offsets[i]);
  return fail({ErrorCode::kPlanInvalid, "a kernel's argument names no buffer of its launch list", frame.name,
               "an input, output or workspace", buffer, "make the plan again with `warploom optimize`"});
}

BundleFile makefile(const Frame& frame) {
  const std::string& arch = frame.list.arch;
  return {"Makefile",
          fill_in(engine_resource(frame.list, "Makefile"),
                  {{"NAME", frame.name}, {"ARCH", arch.starts_with("sm_") ? arch.substr(3) : arch}, {"DEFAULTS", cpu_flags()}})};
}

BundleFile python_module(const Frame& frame, const graph::Graph& graph) {
  const bool gpu = on_gpu(frame.list);
  std::string inputs, outputs, given, sources;
  for (std::size_t i = 0; i < frame.parameters.size(); ++i) {
    const auto& [buffer, variable, type, input] = frame.parameters[i];
    const std::string shape = fmt::format("({}{})", fmt::join(buffer.shape, ", "), buffer.shape.size() == 1 ? "," : "");
    const std::string row = fmt::format("    (\"{}\", \"{}\", {}", buffer.name, name_of(buffer.dtype), shape);
    if (!input) {
      outputs += row + "),\n";
      continue;
    }
    const bool own = held(graph, buffer);
    inputs += fmt::format("{}, {}),\n", row, own ? "\"check/" + input_file(i) + "\"" : "None");
    if (!own) given += (given.empty() ? "" : ", ") + variable;
  }
  for (const Kernel& kernel : frame.list.kernels) sources += kernel.source;
  const std::string number = gpu ? frame.list.arch.substr(3) : "";
  std::string flags = "-std=c++20 -pthread " + cpu_flags();
  for (std::size_t at = 0; (at = flags.find(' ', at)) != std::string::npos; at += 4) flags.replace(at, 1, "\", \"");
  return {
      frame.name + ".py",
      fill_in(resource("bundle/module.py"),
              {{"NAME", frame.name},
               {"SUMMARY", frame.summary},
               {"CALL", fmt::format("{} = run({})", frame.list.outputs.size() == 1 ? "y" : "outputs", given)},
               {"ARCH", gpu ? frame.list.arch : ""},
               {"ENGINE", gpu ? "ptx" : "cpu"},
               {"INPUTS", inputs},
               {"OUTPUTS", outputs},
               {"HASH", hash_hex(sources).substr(0, 8)},
               {"SOURCES", fmt::format("(\"{0}{1}\", \"{0}_host.cpp\")", frame.name, gpu ? ".cu" : "_kernels.cpp")},
               {"CFLAGS", gpu ? "[\"-O2\"]" : "[\"" + flags + "\"]"},
               {"NVCCFLAGS", gpu ? fmt::format("[\"-O3\", \"-gencode\", \"arch=compute_{0},code=sm_{0}\"]", number) : "None"}})};
}

BundleFile readme(const Frame& frame, double tolerance) {
  const bool gpu = on_gpu(frame.list);
  std::string arguments;
  for (const auto& parameter : frame.parameters) arguments += parameter.variable + ", ";
  const std::string call = gpu ? "cudaError_t status = {}_launch({}workspace, stream);" : "int status = {}_run({}workspace);";
  return {"README.md",
          fill_in(resource("bundle/README.md"), {{"NAME", frame.name},
                                                 {"SUMMARY", frame.summary},
                                                 {"POINTERS", gpu ? "device pointers" : "pointers aligned to 64 bytes"},
                                                 {"CALL", fmt::format(fmt::runtime(call), frame.name, arguments)},
                                                 {"PACKAGE", gpu ? "nvcc" : "a C++20 compiler"},
                                                 {"TOLERANCE", fmt::format("{:.1e}", tolerance)},
                                                 {"KERNELS", frame.name + (gpu ? ".cu" : "_kernels.cpp")}})};
}
}  // namespace warploom::export_
