#include "runtime/cpu_compiler.h"
#include <cstdlib>
#include <mutex>
#include "base/file.h"
#include "base/hash.h"
#include "runtime/disk_cache.h"
namespace warploom::runtime {
namespace {
namespace fs = std::filesystem;

constexpr std::array kCompilers = {"g++-14", "g++-13", "g++-12", "g++", "clang++", "c++"};

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
    const auto answer = run_process({path.string(), "-dumpfullversion", "-dumpversion"}, {.time = std::chrono::seconds(10)});
    if (!answer || !answer->succeeded()) continue;
    const std::lock_guard lock(versions_mutex);
    versions[path] = fmt::format("{} {}", path.filename().string(), answer->out.substr(0, answer->out.find('\n')));
    return CpuCompiler{path, versions[path]};
  }
  return fail({ErrorCode::kNoCompiler, "no C++ compiler was found", "PATH and CXX",
               "one of " + fmt::format("{}", fmt::join(names, ", ")), "none that runs",
               "install g++ (12 or later) or clang++, or name one in CXX"});
}

const std::vector<std::string>& cpu_compile_flags() {
  static const std::vector<std::string> flags = {"-O3",     "-march=native", "-mprefer-vector-width=512", "-std=c++20",
                                                 "-shared", "-fPIC",         "-fno-math-errno",           "-ffp-contract=fast"};
  return flags;
}

Result<fs::path> compile_shared_object(const std::string& source, const std::vector<std::string>& flags, const HeaderSet& headers,
                                       std::chrono::milliseconds time) {
  WARPLOOM_TRY(const CpuCompiler compiler, find_cpu_compiler());
  std::vector<std::string> argv = {compiler.path.string()};
  argv.insert(argv.end(), flags.begin(), flags.end());
  const std::string key = hash_hex(
      fmt::format("cpu\n{}\n{}\n{}\n{}\n{}", compiler.version, fmt::join(argv, " "), machine_key(), headers.key, source));
  DiskCache cache("cpu", ".so");
  if (const auto entry = cache.find(key)) return entry->path;
  WARPLOOM_TRY(const Image image, compile_text(compiler.version, std::move(argv), headers, source, ".cpp", time));
  return cache.store(key, image.bytes, source, image.log);
}
}  // namespace warploom::runtime
