#include <fmt/format.h>
#include <unistd.h>

#include "base/file.h"
#include "base/process.h"
#include "cli/command.h"
#include "runtime/cpu_compiler.h"
#include "runtime/driver.h"
#include "runtime/executor.h"
#include "runtime/library.h"
#include "runtime/nvrtc.h"
#include "target/capabilities.h"

namespace warploom::cli {
namespace {

// One thing the machine may have: what was found of it, or what is missing and how to get it.
struct Finding {
  std::string name, needed_for;
  bool found = false;
  std::string detail;  // version or name; the reason where it is not found
  std::string remedy;
};

template <class T, class Describe>
Finding finding(std::string name, std::string needed_for, const Result<T>& result, const Describe& describe) {
  if (result) return {std::move(name), std::move(needed_for), true, describe(*result), ""};
  const Error& error = result.error();
  return {std::move(name), std::move(needed_for), false, error.message, error.remedy};
}

Finding library(std::string name, std::string needed_for, std::initializer_list<const char*> files,
                std::string remedy) {
  const runtime::Library opened(files);
  if (opened) return {std::move(name), std::move(needed_for), true, opened.name(), ""};
  return {std::move(name), std::move(needed_for), false, "not found", std::move(remedy)};
}

Finding program(std::string name, std::string needed_for, const std::string& file, std::string remedy) {
  const auto path = find_program(file);
  if (!path.empty()) return {std::move(name), std::move(needed_for), true, path.string(), ""};
  return {std::move(name), std::move(needed_for), false, "not found", std::move(remedy)};
}

std::vector<Finding> examine() {
  std::vector<Finding> list;
  list.push_back(finding("CPU", "the target cpu", target::capabilities_of("cpu"), [](const target::Capabilities& c) {
    return fmt::format("{}, {} cores, {}-byte vectors", c.arch, c.processors, c.vector_bytes);
  }));
  list.push_back(finding("C++ compiler", "CPU kernels, emulation, `make check` of CPU bundles",
                         runtime::find_cpu_compiler(),
                         [](const runtime::CpuCompiler& c) { return c.version + " at " + c.path.string(); }));
  list.push_back(library("oneDNN", "the reference on the CPU; without it a plain kernel stands in",
                         {"libdnnl.so.3", "libdnnl.so.2"}, "install libdnnl2"));
  list.push_back(program("make", "`make check` of bundles", "make", "install make"));
  list.push_back(finding("CUDA driver", "GPU targets", runtime::Driver::get(),
                         [](const runtime::Driver* driver) { return driver->version(); }));
  list.push_back(finding("GPU", "measuring on GPU targets", runtime::Executor::open(Engine::cuda), [](const auto& gpu) {
    return fmt::format("{} ({}), {} multiprocessors, {:.0f} GiB", gpu->info().name, gpu->info().arch,
                       gpu->info().processors, static_cast<double>(gpu->info().memory_bytes) / 0x1p30);
  }));
  list.push_back(finding("CUDA compiler", "GPU targets", runtime::find_cuda_compiler(),
                         [](const runtime::CudaCompiler& c) { return c.name + " at " + c.path; }));
  list.push_back(library("cuBLASLt", "the reference on a GPU; without it a plain kernel stands in",
                         {"libcublasLt.so.13", "libcublasLt.so.12"},
                         "put the folder of libcublasLt on LD_LIBRARY_PATH"));
  list.push_back(program("nvcc", "`make check` of GPU bundles", "nvcc", "install the CUDA toolkit"));
  const auto cache = cache_folder();
  const bool writable = ::access(cache.c_str(), W_OK) == 0;
  list.push_back({"cache folder", "compiled kernels and the archive", writable, cache.string(),
                  writable ? "" : "set XDG_CACHE_HOME"});
  return list;
}

Result<Answer> doctor(const Session&) {
  const auto findings = examine();
  nlohmann::json rows = nlohmann::json::array();
  std::string text;
  bool cpu = true, gpu = true;
  for (const auto& f : findings) {
    rows.push_back({{"name", f.name},
                    {"found", f.found},
                    {"detail", f.detail},
                    {"needed_for", f.needed_for},
                    {"remedy", f.remedy}});
    text +=
        fmt::format("{} {:<13} {}\n  {:<13} needed for {}\n", f.found ? "+" : "-", f.name, f.detail, "", f.needed_for);
    if (!f.found && !f.remedy.empty()) text += fmt::format("  {:<13} remedy: {}\n", "", f.remedy);
    if (f.name == "CPU" || f.name == "C++ compiler") cpu &= f.found;
    if (f.name == "GPU" || f.name == "CUDA compiler") gpu &= f.found;
  }
  text += fmt::format("targets that can be measured here: {}\n", cpu && gpu ? "cpu, GPU"
                                                                 : cpu      ? "cpu"
                                                                 : gpu      ? "GPU"
                                                                            : "none");
  return Answer{{{"findings", rows}, {"cpu_target", cpu}, {"gpu_target", gpu}}, text, cpu || gpu ? 0 : 3};
}

}  // namespace

Command doctor_command() {
  return {"doctor", "what this machine has and lacks, and what each thing is needed for", {}, doctor};
}

}  // namespace warploom::cli
