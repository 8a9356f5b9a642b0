#include "export/parts.h"
#include "runtime/compilers.h"
namespace warploom::export_ {
namespace {
// Those the kernels were judged with, less what makes them a shared library.
std::string cpu_flags() {
  std::string text;
  for (const std::string_view flag : runtime::cpu_compile_flags())
    if (flag != "-shared" && flag != "-fPIC" && !flag.starts_with("-std=")) text += (text.empty() ? "" : " ") + std::string(flag);
  return text;
}
}  // namespace
BundleFile makefile(const Frame& frame) {
  const std::string& arch = frame.list.arch;
  return {"Makefile",
          fill_in(engine_resource(frame.list, "Makefile"),
                  {{"NAME", frame.name}, {"ARCH", arch.starts_with("sm_") ? arch.substr(3) : arch}, {"DEFAULTS", cpu_flags()}})};
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
