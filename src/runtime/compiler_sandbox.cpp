#include "runtime/compiler_sandbox.h"
#include <fmt/format.h>
#include <link.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <regex>
#include <string>
#include <string_view>
#include <system_error>
#include <tl/expected.hpp>
#include <vector>
#include "base/casts.h"
#include "base/confine.h"
#include "base/error.h"
#include "base/file.h"
#include "base/process.h"
#include "base/quoted.h"
#include "base/rendered.h"
#include "runtime/compilers.h"

namespace warploom::runtime {
namespace fs = std::filesystem;
using std::chrono::milliseconds;

namespace {
// Sanitizers reserve address space freely and read of /proc.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

constexpr uint64_t kMemory = 4ull << 30;
constexpr uint64_t kCudaMemory = 8ull << 30;  // NVRTC's own libraries and nvcc's programs
constexpr uint64_t kFile = 256ull << 20;
constexpr size_t kWords = 16 << 10;  // of a compiler, that an error carries

constexpr std::array kSystemFolders = {"/usr",       "/bin",       "/lib",
                                       "/lib32",     "/lib64",     "/etc/ld.so.cache",
                                       "/nix/store", "/gnu/store", "/etc/alternatives",
                                       "/opt"};
// Beneath the prefix of a compiler that is not the system's, or of a toolkit.
constexpr std::array kPrefixFolders = {"bin",
                                       "lib",
                                       "lib32",
                                       "lib64",
                                       "libexec",
                                       "include",
                                       "nvvm",
                                       "targets",
                                       "x86_64-linux-gnu",
                                       "x86_64-pc-linux-gnu",
                                       "x86_64-conda-linux-gnu",
                                       "aarch64-linux-gnu",
                                       "aarch64-conda-linux-gnu"};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

void add_program(std::vector<fs::path>& paths, const fs::path& program) {
  std::error_code ignored;
  const fs::path real = fs::canonical(program, ignored);
  if (ignored) return;
  paths.push_back(real);
  const fs::path prefix = real.parent_path().parent_path();
  if (prefix == "/" || real.parent_path().filename() != "bin") return;
  for (const char* folder : kPrefixFolders)
    paths.push_back(prefix / folder);
}

// The libraries of this process, for the helper program is this one as a rule.
int add_library(dl_phdr_info* library, size_t, void* paths) {
  if (library->dlpi_name[0] == '/')
    static_cast<std::vector<fs::path>*>(paths)->push_back(library->dlpi_name);
  return 0;
}

fs::path ccache_folder() {
  if (const std::string named = variable("CCACHE_DIR"); !named.empty()) return named;
  std::error_code ignored;
  const fs::path home = variable("HOME");
  if (fs::exists(home / ".ccache", ignored)) return home / ".ccache";
  const std::string cache = variable("XDG_CACHE_HOME");
  return (cache.empty() ? home / ".cache" : fs::path(cache)) / "ccache";
}

// The part of `words` that `pattern` holds in brackets.
std::string found_in(const std::string& words, const char* pattern) {
  std::smatch found;
  return std::regex_search(words, found, std::regex(pattern)) ? found.str(1) : "";
}

bool says(const std::string& words, std::initializer_list<const char*> any) {
  return std::ranges::any_of(any, [&](const char* one) { return words.find(one) != words.npos; });
}
}  // namespace

std::vector<fs::path> files_of_compiler(const Compiler& compiler,
                                        const std::vector<std::string>& flags) {
  std::vector<fs::path> paths(kSystemFolders.begin(), kSystemFolders.end());
  if (compiler.nvrtc) {
    std::error_code ignored;
    paths.push_back(fs::canonical(compiler.path, ignored).parent_path());
    if (!helper_program().empty()) paths.push_back(fs::canonical(helper_program(), ignored));
    ::dl_iterate_phdr(add_library, &paths);
    if (kSanitized) paths.emplace_back("/proc");
  } else {
    add_program(paths, compiler.path);
    paths.emplace_back(compiler.path);
  }
  if (const std::string toolkit = variable("CUDA_HOME"); !toolkit.empty())
    add_program(paths, fs::path(toolkit) / "bin/nvcc");
  for (const std::string& argument : compiler.arguments)
    add_program(paths, find_program(argument));
  // "-I/opt/include", "--sysroot=/opt/root": whoever named the compiler named them.
  auto all = compiler.arguments;
  all.insert(all.end(), flags.begin(), flags.end());
  for (const std::string& flag : all)
    if (const size_t at = flag.find('/'); at != flag.npos && at + 1 < flag.size())
      paths.emplace_back(flag.substr(at));
  std::erase_if(paths, [](const fs::path& path) { return !path.is_absolute() || path == "/"; });
  return paths;
}

CompilerSandbox::CompilerSandbox(const Compiler& compiler, const std::vector<std::string>& flags,
                                 const std::string& device, milliseconds time, bool foreign)
    : compiler_(compiler),
      time_(time),
      end_(std::chrono::steady_clock::now() + time),
      foreign_(foreign) {
  const bool cuda = device == "ptx";
  limits_.readable = files_of_compiler(compiler, flags);
  limits_.writable = {folder(), "/dev/null"};
  if (compiler.name.find("ccache") != compiler.name.npos && !foreign)
    limits_.writable.push_back(ccache_folder());
  limits_.memory_bytes = cuda ? kCudaMemory : kMemory;
  if (kSanitized && compiler.nvrtc) limits_.memory_bytes = 0;
  // The clock ends it first, unless a process escapes its group.
  limits_.cpu_seconds = as_uint64(time.count() / 1000 + 1) * (cuda ? 8 : 1) + 1;
  limits_.file_bytes = kFile;
  for (const EmbeddedFile& file : headers_of(device))
    std::ofstream(folder() / file.path) << file.text;
}

Status CompilerSandbox::write(const std::string& name, std::string_view text) const {
  if (Status written = write_file(folder() / name, text); !written) {
    written.error().remedy = "name a folder that can be written, with room in it, in TMPDIR";
    return tl::unexpected(written.error());
  }
  return ok();
}

void CompilerSandbox::lend(const std::string& name, const fs::path& file) {
  std::error_code ignored;  // who does not find it does without
  fs::create_symlink(file, folder() / name, ignored);
  limits_.readable.push_back(file);
}

Result<std::string> CompilerSandbox::read(const std::string& name) const {
  return read_file(folder() / name);
}

// The parent's, as far as compilers need it; no home, no secrets.
std::vector<std::string> CompilerSandbox::environment() const {
  const std::string here = folder().string();
  std::vector<std::string> all = {"HOME=" + here, "TMPDIR=" + here, "LANG=C", "LC_ALL=C",
                                  "CUDA_CACHE_DISABLE=1"};
  for (const char* name : {"PATH", "LD_LIBRARY_PATH", "CUDA_HOME"})
    if (const std::string value = variable(name); !value.empty())
      all.push_back(fmt::format("{}={}", name, value));
  if (compiler_.nvrtc) all.push_back("WARPLOOM_NVRTC=" + compiler_.path);
  if (foreign_) {
    // Its own image is what is cached; and what __TIME__ would be, if it were allowed.
    all.emplace_back("CCACHE_DISABLE=1");
    all.emplace_back("SOURCE_DATE_EPOCH=0");
  } else {
    all.push_back("CCACHE_DIR=" + ccache_folder().string());
  }
  return all;
}

Result<std::string> CompilerSandbox::run(const std::vector<std::string>& argv) const {
  const Confine confine(limits_);
  const auto variables = environment();
  std::vector<char*> raw;
  for (const std::string& one : variables)
    raw.push_back(const_cast<char*>(one.c_str()));
  raw.push_back(nullptr);
  const auto now = std::chrono::steady_clock::now();
  ProcessLimits limits;
  limits.time = std::max(milliseconds(0), std::chrono::ceil<milliseconds>(end_ - now));
  limits.prepare = [&] {
    if (::chdir(folder().c_str()) != 0) ::_exit(126);
    environ = raw.data();
    confine.enter();
  };
  WARPLOOM_TRY(const ProcessResult done, run_process(argv, limits));
  if (!done.succeeded()) return fail(refusal(done));
  return done.out + done.err;
}

// What a compiler that failed left to say. Without Landlock a text may have had it read any file,
// and the lines that it quotes are left out.
std::string CompilerSandbox::words_of(const ProcessResult& done) const {
  if (done.err.empty() && done.signal) return fmt::format("it died of signal {}", done.signal);
  if (done.err.empty()) return fmt::format("exit status {}", done.exit_status);
  static const bool hidden = confinement_in_force() == "rlimits";
  if (!foreign_ || !hidden) return printable_lines(done.err.substr(0, kWords));
  return "its words may quote files of this machine, which has no Landlock to keep them shut";
}

Error CompilerSandbox::out_of_time() const {
  return {ErrorCode::kCompileTimeout,
          "the compiler did not finish in time",
          compiler_.name,
          fmt::format("at most {} ms", time_.count()),
          "still running",
          foreign_ ? "take less of templates, constant expressions and macros"
                   : "allow more time or take a smaller schedule"};
}

Error CompilerSandbox::refusal(const ProcessResult& done) const {
  const std::string& words = done.err;
  if (done.timed_out || done.signal == SIGXCPU || says(words, {"CPU time limit exceeded"}))
    return out_of_time();
  Error error{ErrorCode::kCompileFailed, "the compiler refused the source", compiler_.name};
  error.expected = "source that compiles";
  error.found = words_of(done);
  error.remedy = foreign_ ? "mend the text at that line"
                          : "report the schedule: emitted source should always compile";
  const std::string line = found_in(words, "kernels\\.cp?p?u?[:(](\\d+)[^\\n]*error");
  if (foreign_ && !line.empty()) error.place = "line " + line;
  if (const std::string file =
          found_in(words, "error: (?:cannot open file ')?([^\\n']*)'?: Permission denied");
      !file.empty()) {
    error.message = "the text includes a file that it may not read";
    error.expected = "the compiler's own headers and Warploom's device headers";
    error.found = printable(file);
    error.remedy = "write what it needs into the kernel file";
  } else if (says(words,
                  {"virtual memory exhausted", "out of memory allocating", "annot allocate memory",
                   "std::bad_alloc", "LLVM ERROR: out of memory", "memory exhausted"})) {
    error.message = "the compiler needed too much memory";
    error.expected = fmt::format("at most {} GB", limits_.memory_bytes >> 30);
    error.remedy = "take less of templates, constant expressions and tables";
  } else if (done.signal == SIGXFSZ ||
             says(words, {"File size limit exceeded", "File too large"})) {
    error.message = "the compiler wrote too large a file";
    error.expected = fmt::format("at most {} MB", limits_.file_bytes >> 20);
    error.remedy = "take less of templates, macros and tables";
  }
  return error;
}
}  // namespace warploom::runtime
