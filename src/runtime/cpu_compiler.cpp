#include "runtime/cpu_compiler.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <map>
#include <mutex>

#include "base/file.h"
#include "base/hash.h"
#include "base/process.h"
#include "runtime/disk_cache.h"
#include "runtime/header_set.h"

namespace warploom::runtime {
namespace {

namespace fs = std::filesystem;

constexpr std::array kCompilers = {"g++-14", "g++-13", "g++-12", "g++", "clang++", "c++"};
constexpr std::array kFlags = {"-O3",     "-march=native", "-mprefer-vector-width=512", "-std=c++20",
                               "-shared", "-fPIC",         "-fno-math-errno",           "-ffp-contract=fast"};

std::mutex versions_mutex;
std::map<fs::path, std::string> versions;  // of compilers that were asked before

// What -march=native means here: images do not move between unlike machines that share a cache folder.
const std::string& machine_key() {
  static const std::string key = [] {
    std::string chosen;
    const auto text = read_file("/proc/cpuinfo");
    for (const char* field : {"model name", "flags"}) {
      const std::size_t begin = text ? text->find(field) : std::string::npos;
      if (begin != std::string::npos) chosen += text->substr(begin, text->find('\n', begin) - begin);
    }
    return hash_hex(chosen);
  }();
  return key;
}

}  // namespace

Result<CpuCompiler> find_cpu_compiler() {
  std::vector<std::string> names;
  if (const char* cxx = std::getenv("CXX"); cxx && *cxx) names.emplace_back(cxx);
  names.insert(names.end(), kCompilers.begin(), kCompilers.end());
  for (const std::string& name : names) {
    const fs::path path = find_program(name);
    if (path.empty()) continue;
    if (const std::lock_guard lock(versions_mutex); versions.contains(path)) return CpuCompiler{path, versions[path]};
    const auto answer =
        run_process({path.string(), "-dumpfullversion", "-dumpversion"}, {.time = std::chrono::seconds(10)});
    if (!answer || !answer->succeeded()) continue;
    const std::lock_guard lock(versions_mutex);
    versions[path] = fmt::format("{} {}", path.filename().string(), answer->out.substr(0, answer->out.find('\n')));
    return CpuCompiler{path, versions[path]};
  }
  return fail({ErrorCode::kNoCompiler, "no C++ compiler was found", "PATH and CXX",
               "one of " + fmt::format("{}", fmt::join(names, ", ")), "none that runs",
               "install g++ (12 or later) or clang++, or name one in CXX"});
}

std::span<const char* const> cpu_compile_flags() { return kFlags; }

Result<fs::path> compile_shared_object(const std::string& source, const CompileOptions& options, std::string* log) {
  WARPLOOM_TRY(const CpuCompiler compiler, find_cpu_compiler());
  std::vector<std::string> argv = {compiler.path.string()};
  argv.insert(argv.end(), kFlags.begin(), kFlags.end());
  argv.insert(argv.end(), options.flags.begin(), options.flags.end());
  const std::string key = hash_hex(fmt::format("cpu\n{}\n{}\n{}\n{}\n{}", compiler.version, fmt::join(argv, " "),
                                               machine_key(), cpu_headers().key, source));
  DiskCache cache("cpu", ".so");
  if (options.use_cache) {
    if (auto entry = cache.find(key)) {
      if (log) *log = entry->log;
      return entry->path;
    }
  }
  WARPLOOM_TRY(const fs::path headers, header_folder(cpu_headers()));
  const ScratchFolder scratch("compile");
  const fs::path text = scratch.path() / "kernels.cpp", image = scratch.path() / "kernels.so";
  WARPLOOM_CHECK(write_file(text, source));
  argv.insert(argv.end(), {"-I", headers.string(), "-o", image.string(), text.string()});
  WARPLOOM_TRY(const ProcessResult done, run_process(argv, {.time = options.time}, scratch.path()));
  if (done.timed_out)
    return fail({ErrorCode::kCompileTimeout, "the C++ compiler did not finish in time", compiler.version,
                 fmt::format("at most {} ms", options.time.count()), "still running",
                 "allow more time or take a smaller schedule"});
  if (!done.succeeded())
    return fail({ErrorCode::kCompileFailed, "the C++ compiler refused the source", compiler.version,
                 "source that compiles",
                 done.err.empty() ? fmt::format("signal {}, exit status {}", done.signal, done.exit_status) : done.err,
                 "report the schedule: emitted source should always compile"});
  if (log) *log = done.err;
  WARPLOOM_TRY(const std::string bytes, read_file(image));
  return cache.store(key, bytes, source, done.err);
}

}  // namespace warploom::runtime
