#include "runtime/compilers.h"
#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <glob.h>
#include <stdlib.h>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <regex>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/error.h"
#include "base/process.h"
#include "base/rendered.h"
#include "runtime/library.h"
#include "target/instruction_set.h"

namespace warploom::runtime {
namespace {
constexpr std::array kCompilers = {"g++-14", "g++-13", "g++-12", "g++", "clang++", "c++"};

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

// What a program prints; nothing where it does not run well.
std::string answer_of(const std::vector<std::string>& argv) {
  const auto answer = run_process(argv, {.time = std::chrono::seconds(20)});
  return answer && answer->succeeded() ? answer->out : "";
}

// Where an NVRTC may lie, best first. What a variable that is not set leaves of a path finds
// nothing or is right as well.
std::vector<std::string> candidates() {
  if (const std::string named = environment("WARPLOOM_NVRTC"); !named.empty()) return {named};
  std::vector<std::string> names = {"libnvrtc.so.13", "libnvrtc.so.12"};
  const std::string pattern = fmt::format(
      "{{{}/lib64,/usr/local/cuda/lib64,{{{}/lib,{}/lib,/usr/lib,/usr/local/lib,/opt/*/.venv/lib,/"
      "opt/*/lib,{}/.local/lib}}"
      "/python3*/{{site,dist}}-packages/nvidia/{{cu13,cuda_nvrtc}}/lib}}/libnvrtc.so.1{{3,2}}",
      environment("CUDA_HOME"), environment("VIRTUAL_ENV"), environment("CONDA_PREFIX"),
      environment("HOME"));
  glob_t found{};
  if (::glob(pattern.c_str(), GLOB_BRACE, nullptr, &found) == 0)
    names.insert(names.end(), found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  return names;
}

// NVRTC's own types and functions. Source: NVRTC documentation, "User interface".
struct Nvrtc {
  using Program = struct NvrtcProgram*;
  const Library library{candidates()};
  int (*version)(int* major, int* minor) = library["nvrtcVersion"];
  int (*create)(Program*, const char* source, const char* name, int headers,
                const char* const* texts, const char* const* names) = library["nvrtcCreateProgram"];
  int (*destroy)(Program*) = library["nvrtcDestroyProgram"];
  int (*compile)(Program, int options, const char* const* texts) = library["nvrtcCompileProgram"];
  int (*log_size)(Program, size_t*) = library["nvrtcGetProgramLogSize"];
  int (*log)(Program, char*) = library["nvrtcGetProgramLog"];
  int (*cubin_size)(Program, size_t*) = library["nvrtcGetCUBINSize"];
  int (*cubin)(Program, char*) = library["nvrtcGetCUBIN"];
  int (*ptx_size)(Program, size_t*) = library["nvrtcGetPTXSize"];
  int (*ptx)(Program, char*) = library["nvrtcGetPTX"];
  const char* (*words)(int code) = library["nvrtcGetErrorString"];
  bool ready = library.complete();
};

Nvrtc load_nvrtc() {
  // Its own cache keeps images without their logs, in which spills stand.
  setenv("CUDA_CACHE_DISABLE", "1", 1);
  return {};
}

const Nvrtc& nvrtc() {
  static const Nvrtc instance = load_nvrtc();
  return instance;
}

// In full, also where the loader found it by its name.
std::string path_of_nvrtc() {
  Dl_info found{};
  const bool known = ::dladdr(reinterpret_cast<void*>(nvrtc().version), &found) != 0;
  return known && found.dli_fname ? found.dli_fname : nvrtc().library.name();
}

Result<Compiler> look_for_compiler() {
  if (nvrtc().ready) {
    int major = 0;
    int minor = 0;
    nvrtc().version(&major, &minor);
    return Compiler{fmt::format("NVRTC {}.{}", major, minor), path_of_nvrtc(), true};
  }
  for (const std::string& name : {environment("CUDA_HOME") + "/bin/nvcc", std::string("nvcc"),
                                  std::string("/usr/local/cuda/bin/nvcc")}) {
    const std::string path = find_program(name).string();
    const std::string words = path.empty() ? "" : answer_of({path, "--version"});
    if (const size_t at = words.find("release "); at != std::string::npos)
      return Compiler{"nvcc " + words.substr(at + 8, words.find(',', at) - at - 8), path};
  }
  return fail({ErrorCode::kNoNvrtc, "no NVRTC was found", "libnvrtc.so.13, libnvrtc.so.12",
               "NVRTC on the loader's path, under CUDA_HOME, or in a Python environment",
               nvrtc().library.why_not(),
               "install the CUDA toolkit or the nvidia-cuda-nvrtc package, or name the library in "
               "WARPLOOM_NVRTC"});
}

// The program of a command line and its first words, if it says which version it is: "g++",
// "ccache g++", "clang++ -stdlib=libc++".
std::optional<Compiler> cpu_compiler_of(const std::string& command) {
  static std::mutex mutex;
  static std::map<std::string, std::string> versions;  // of those asked before, by command line
  std::istringstream split(command);
  std::vector<std::string> words{std::istream_iterator<std::string>(split), {}};
  if (words.empty()) return std::nullopt;
  const std::string path = find_program(words[0]).string();
  if (path.empty()) return std::nullopt;
  words[0] = path;
  const std::lock_guard lock(mutex);
  std::string& version = versions[fmt::format("{}", fmt::join(words, " "))];
  if (version.empty()) {
    std::vector<std::string> asks = words;
    asks.insert(asks.end(), {"-dumpfullversion", "-dumpversion"});
    version = answer_of(asks);
  }
  if (version.empty()) return std::nullopt;
  Compiler found{.path = path, .arguments = {words.begin() + 1, words.end()}};
  words[0] = path.substr(path.rfind('/') + 1);
  found.name = fmt::format("{} {}", fmt::join(words, " "), version.substr(0, version.find('\n')));
  return found;
}
}  // namespace

Result<Compiler> find_cuda_compiler() {
  static const auto compiler = look_for_compiler();
  return compiler;
}

Result<Compiler> find_cpu_compiler() {
  const std::string named = environment("CXX");
  if (named.find_first_not_of(" \t\n") != named.npos) {
    // Who names a compiler gets no other one.
    if (std::optional<Compiler> compiler = cpu_compiler_of(named)) return *std::move(compiler);
    return fail({ErrorCode::kNoCompiler, "CXX names no C++ compiler that runs", "CXX",
                 "a program that answers -dumpversion, and its first arguments", named,
                 "unset CXX for the newest g++ or clang++ on the PATH, or name another"});
  }
  for (const char* name : kCompilers)
    if (std::optional<Compiler> compiler = cpu_compiler_of(name)) return *std::move(compiler);
  return fail({ErrorCode::kNoCompiler, "no C++ compiler was found", "PATH and CXX",
               fmt::format("one of {}", fmt::join(kCompilers, ", ")), "none that runs",
               "install g++ (12 or later) or clang++, or name one in CXX"});
}

std::vector<std::string> cpu_compile_flags(std::string_view arch) {
  const target::InstructionSet& here = target::instruction_set_here();
  const target::InstructionSet* const named = target::instruction_set(arch);
  const target::InstructionSet& set = named ? *named : here;
  const std::string_view march = &set == &here ? "native" : set.march;
  std::vector<std::string> flags = {"-O3", fmt::format("-march={}", march)};
  if (!set.tuning.empty()) flags.emplace_back(set.tuning);
  flags.insert(flags.end(),
               {"-std=c++20", "-shared", "-fPIC", "-fno-math-errno", "-ffp-contract=fast"});
  return flags;
}

std::vector<std::string> cpu_command(const Compiler& compiler, std::string_view arch) {
  std::vector<std::string> argv = {compiler.path};
  argv.insert(argv.end(), compiler.arguments.begin(), compiler.arguments.end());
  const std::vector<std::string> flags = cpu_compile_flags(arch);
  argv.insert(argv.end(), flags.begin(), flags.end());
  argv.insert(argv.end(), {"-nostartfiles", "-Wl,--as-needed", "-Wl,-z,now,-z,relro"});
  return argv;
}

Result<Output> compile_cuda_in_process(const std::string& source, const std::string& arch) {
  const Nvrtc& n = nvrtc();
  std::vector<const char*> texts;
  std::vector<const char*> names;
  const auto headers = headers_of("ptx");
  for (const EmbeddedFile& file : headers) {
    texts.push_back(file.text.c_str());
    names.push_back(file.path.c_str());
  }
  const std::string target = "--gpu-architecture=" + arch;
  const char* const options[] = {target.c_str(), "--std=c++17", "-lineinfo", "--ptxas-options=-v"};
  Nvrtc::Program program = nullptr;
  int code = n.create(&program, source.c_str(), "kernel.cu", as_int(texts.size()), texts.data(),
                      names.data());
  Output made;
  if (code == 0) {
    code = n.compile(program, as_int(std::size(options)), options);
    size_t bytes = 0;
    if (n.log_size(program, &bytes) == 0 && bytes > 1) {
      made.log.resize(bytes);
      n.log(program, made.log.data());
      made.log.resize(bytes - 1);  // its final zero
    }
    if (code == 0 && (code = n.cubin_size(program, &bytes)) == 0) {
      made.image.resize(bytes);
      code = n.cubin(program, made.image.data());
    }
    if (code == 0 && (code = n.ptx_size(program, &bytes)) == 0) {
      made.ptx.resize(bytes);
      code = n.ptx(program, made.ptx.data());
    }
    n.destroy(&program);
  }
  if (code != 0 || made.image.empty())
    return fail({ErrorCode::kCompileFailed, "NVRTC refused the source", arch,
                 "source that compiles", made.log.empty() ? n.words(code) : made.log,
                 "report the schedule: emitted source should always compile"});
  return made;
}

// What ptxas -v prints, in two dialects: nvcc's own lines start with "ptxas info    :", NVRTC's
// continuation lines with "ptxas         .". Only the words that both share are looked at.
//
//   ptxas info    : Compiling entry function 'gemm' for 'sm_90a'
//   ptxas         .     0 bytes stack frame, 16 bytes spill stores, 24 bytes spill loads
//   ptxas info    : Used 168 registers, used 1 barriers, 256 bytes smem
//   ptxas info    : (C7510) Potential Performance Loss: …       (C75 and its kin: a wgmma pipeline
//   that had to be serialised)
PtxasReport parse_ptxas(std::string_view log) {
  static const std::regex words(
      "Compiling entry function '([^']*)'|(\\d+) bytes spill|Used (\\d+) registers|(\\d+) bytes "
      "smem|\\(C75[^)\\n]*\\)[^\\n]*");
  PtxasReport report;
  std::cregex_iterator found(log.data(), log.data() + log.size(), words);
  for (; found != std::cregex_iterator(); ++found) {
    const std::cmatch& match = *found;
    const auto number = [&](size_t group) {
      return match[group].matched ? std::stoi(match[group]) : 0;
    };
    if (match[1].matched)
      report.kernels.push_back({match[1], 0, 0, 0});
    else if (match.str().starts_with("(C75"))
      report.warnings.push_back(match.str());
    if (report.kernels.empty()) continue;
    KernelFigures& kernel = report.kernels.back();
    kernel.spill_bytes += number(2);
    kernel.registers += number(3);
    kernel.static_shared += number(4);
  }
  return report;
}
}  // namespace warploom::runtime
