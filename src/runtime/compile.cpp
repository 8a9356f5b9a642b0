// A launch list's images and their cache on the disk. NVRTC runs in a child process, the host
// program's hidden subcommand:
//
//   PROGRAM __compile ARCH -I HEADERS -o IMAGE SOURCE      its own headers it knows; what NVRTC and
//   ptxas say goes to stderr
#include "runtime/compile.h"
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <future>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <tl/expected.hpp>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/confine.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/process.h"
#include "base/rendered.h"
#include "codegen/launch_list.h"
#include "runtime/compiler_sandbox.h"
#include "runtime/compilers.h"
#include "runtime/foreign_text.h"
#include "runtime/precompiled_header.h"
#include "runtime/units.h"
#include "target/instruction_set.h"

namespace warploom::runtime {
namespace fs = std::filesystem;

namespace {
Status judge(const PtxasReport& report, const CompileOptions& options, const std::string& kernel) {
  if (!report.warnings.empty())
    return fail({ErrorCode::kCompileFailed, "ptxas serialised the kernel's wgmma instructions",
                 kernel, "wgmma instructions in flight together", report.warnings.front(),
                 "take another schedule"});
  for (const KernelFigures& figures : report.kernels)
    if (figures.spill_bytes > options.most_spills)
      return fail({ErrorCode::kCompileFailed, "registers spill to local memory", figures.name,
                   fmt::format("at most {} bytes", options.most_spills),
                   fmt::format("{} bytes of spill stores and loads, {} registers",
                               figures.spill_bytes, figures.registers),
                   "take a smaller tile or fewer threads"});
  return ok();
}

constexpr const char* kCompileCommand = "__compile";
constexpr int kArguments = 8;

std::string program_of_helper;

// A text on its way to an image.
struct Job {
  Compiler compiler;
  std::vector<std::string> argv;  // the program and its flags
  std::string device;             // whose headers it may include
  std::string source;
  std::chrono::milliseconds time;
  bool foreign = false;

  bool is_cuda() const { return device == "ptx"; }
};

// What makes an image of `text` what it is.
std::string key_of(const Job& job, const std::string& text) {
  // Images do not move between unlike machines that share a cache folder.
  std::string made_of = fmt::format("{}\n{}\n{}\n{}\n{}", job.compiler.name,
                                    fmt::join(job.argv, " "), this_processor(), job.foreign, text);
  for (const EmbeddedFile& file : headers_of(job.device))
    made_of += '\0' + file.path + '\0' + file.text;
  return hash_hex(made_of);
}

// The arguments of one step: `more` behind the program and its flags.
std::vector<std::string> step(const Job& job, std::initializer_list<const char*> more) {
  auto argv = job.argv;
  argv.insert(argv.end(), more.begin(), more.end());
  return argv;
}

// A foreign C++ text, step by step: what it includes is part of its key, and what its asm
// statements came to is seen before an assembler sees it.
Result<Image> foreign_image_of(const Job& job) {
  const DiskCache cache = image_cache();
  const CompilerSandbox sandbox(job.compiler, job.argv, job.device, job.time, true);
  WARPLOOM_CHECK(sandbox.write("kernels.cpp", job.source));
  // Once compiled, a text that sees the time is another one the next day.
  const auto to_preprocessed =
      step(job, {"-E", "-Werror=date-time", "-I", ".", "-o", "kernels.ii", "kernels.cpp"});
  WARPLOOM_CHECK(sandbox.run(to_preprocessed));
  WARPLOOM_TRY(const std::string text, sandbox.read("kernels.ii"));
  WARPLOOM_CHECK(check_preprocessed(text, sandbox.readable()));
  const std::string key = key_of(job, text);
  if (auto image = cache.find(key)) return std::move(*image);
  auto to_assembly = step(job, {"-S", "-o", "kernels.s", "kernels.ii"});
  // clang++ would assemble asm statements, with their directives, on its way to the text.
  if (job.compiler.name.find("clang") != job.compiler.name.npos)
    to_assembly.emplace_back("-fno-integrated-as");
  WARPLOOM_TRY(const std::string log, sandbox.run(to_assembly));
  WARPLOOM_TRY(const std::string assembly, sandbox.read("kernels.s"));
  WARPLOOM_CHECK(check_assembly(assembly));
  const auto to_image = step(job, {"-o", "image", "kernels.s"});
  WARPLOOM_TRY(const std::string more, sandbox.run(to_image));
  WARPLOOM_TRY(const std::string bytes, sandbox.read("image"));
  return cache.store(key, bytes, job.source, log + more);
}

// By NVRTC in this process, which runs nothing but what Warploom emitted.
Result<Image> image_in_process(const Job& job, const std::string& key) {
  if (job.foreign) {
    Error error{ErrorCode::kCompileFailed, "no process is known to shut NVRTC in"};
    error.place = job.compiler.name;
    error.expected = "set_helper_program() before foreign text is compiled";
    error.remedy = "use the warploom program, or install nvcc";
    return fail(error);
  }
  WARPLOOM_TRY(const Output made, compile_cuda_in_process(job.source, job.argv.back()));
  return image_cache().store(key, made.image, job.source, made.log, made.ptx);
}

// What a foreign text includes, nvcc does not say before it has compiled it.
bool may_lie(const Job& job) {
  return job.foreign && !job.compiler.nvrtc;
}

Result<Image> image_in_sandbox(const Job& job, const std::string& key) {
  CompilerSandbox sandbox(job.compiler, job.argv, job.device, job.time, job.foreign);
  if (job.device == "cpu" && !job.foreign)
    if (const auto header = precompiled_header(job.compiler, job.argv, job.source))
      sandbox.lend(kPrecompiledName, *header);
  const char* const name = job.is_cuda() ? "kernels.cu" : "kernels.cpp";
  WARPLOOM_CHECK(sandbox.write(name, job.source));
  std::vector<std::string> argv = step(job, {"-I", ".", "-o", "image", name});
  // nvcc assembles what it keeps: kernels.ptx.
  if (job.is_cuda() && !job.compiler.nvrtc) argv.insert(argv.end(), {"--keep", "--keep-dir", "."});
  WARPLOOM_TRY(const std::string log, sandbox.run(argv));
  if (may_lie(job)) {
    WARPLOOM_TRY(const std::string text, sandbox.read("kernels.cpp1.ii"));
    WARPLOOM_CHECK(check_preprocessed(text, sandbox.readable()));
  }
  WARPLOOM_TRY(const std::string bytes, sandbox.read("image"));
  std::string ptx;
  if (job.is_cuda()) WARPLOOM_TRY(ptx, sandbox.read("kernels.ptx"));
  return image_cache().store(key, bytes, job.source, log, ptx);
}

// The image of a text, from the cache or made now: by NVRTC in this process where no program is
// known, else in a sandbox.
Result<Image> image_of(const Job& job) {
  if (job.foreign && !job.is_cuda()) return foreign_image_of(job);
  const std::string key = key_of(job, job.source);
  auto image = may_lie(job) ? std::nullopt : image_cache().find(key);
  const bool is_whole = image && (!job.is_cuda() || fs::exists(ptx_beside(image->path)));
  if (is_whole) return *std::move(image);
  return job.argv[0].empty() ? image_in_process(job, key) : image_in_sandbox(job, key);
}

constexpr const char* kImage = ".image";
constexpr const char* kSource = ".txt";
constexpr const char* kLog = ".log";
constexpr const char* kPtx = ".ptx";

// Bytes stored by this process since it last looked through the folder.
std::atomic<int64_t> unseen_bytes{-1};

void shrink(const DiskCache& cache) {
  std::vector<std::pair<fs::file_time_type, fs::path>> images;
  int64_t total = 0;
  std::error_code error;  // another process may be shrinking it as well
  for (const auto& file : fs::directory_iterator(cache.folder, error)) {
    total += as_int64(file.file_size(error));
    if (file.path().extension() == kImage)
      images.emplace_back(file.last_write_time(error), file.path());
  }
  if (total <= cache.cap_bytes) return;
  std::ranges::sort(images);
  if (!images.empty())
    images.pop_back();  // the newest is the one just stored: its maker is about to read it
  for (auto& [used, file] : images) {
    if (total <= cache.cap_bytes - cache.cap_bytes / 10) break;
    for (const char* part : {kImage, kSource, kLog, kPtx}) {
      const auto bytes = fs::file_size(file.replace_extension(part), error);
      if (error) continue;  // as of a CPU's, which has no PTX
      total -= as_int64(bytes);
      fs::remove(file, error);
    }
  }
}
}  // namespace

DiskCache image_cache() {
  constexpr int64_t kDefault = int64_t{2} << 30;
  const char* const text = std::getenv("WARPLOOM_CACHE_BYTES");
  char* end = nullptr;
  const long long cap = text ? std::strtoll(text, &end, 10) : -1;
  return {cache_folder() / "images", text && *text && *end == '\0' && cap >= 0 ? cap : kDefault};
}

std::optional<Image> DiskCache::find(const std::string& key) const {
  const fs::path path = folder / (key + kImage);
  // Setting the time of use doubles as the test of existence.
  if (::utimensat(AT_FDCWD, path.c_str(), nullptr, 0) != 0) return std::nullopt;
  return Image{path, read_file(folder / (key + kLog)).value_or("")};
}

Result<Image> DiskCache::store(const std::string& key, std::string_view image,
                               std::string_view source, std::string_view log,
                               std::string_view ptx) const {
  const fs::path path = folder / (key + kImage);
  const auto write = [&]() -> Status {
    WARPLOOM_CHECK(make_folders(folder));
    WARPLOOM_CHECK(write_file(folder / (key + kSource), source));
    WARPLOOM_CHECK(write_file(folder / (key + kLog), log));
    if (!ptx.empty()) WARPLOOM_CHECK(write_file(folder / (key + kPtx), ptx));
    return write_file(path, image);  // last: whoever sees the image sees its log
  };
  if (Status written = write(); !written) {
    written.error().remedy = "free some space, or name another folder in XDG_CACHE_HOME";
    return tl::unexpected(written.error());
  }
  const auto bytes = as_int64(image.size() + source.size() + log.size());
  const int64_t before = unseen_bytes.fetch_add(bytes);
  if (before < 0 || before + bytes >= cap_bytes / 64) {
    unseen_bytes = 0;
    shrink(*this);
  }
  return Image{path, std::string(log)};
}

fs::path ptx_beside(fs::path image) {
  return image.replace_extension(kPtx);
}

std::vector<EmbeddedFile> headers_of(const std::string& device) {
  std::vector<EmbeddedFile> out;
  for (const EmbeddedFile& file : device_headers())
    if (const fs::path path = file.path;
        path.parent_path() == device || path.parent_path() == "common")
      out.push_back({path.filename().string(), file.text});
  return out;
}

namespace {
// work(0) to work(count - 1), in this thread and in as many others as there are turns free.
void at_once(size_t count, const CompileOptions& options, const std::function<void(size_t)>& work) {
  std::atomic<size_t> next = 0;
  const auto all = [&] {
    for (size_t i = next++; i < count; i = next++)
      work(i);
  };
  const auto beside = [&] {
    end_processes_with(options.ended);
    all();
    options.turns->release();
  };
  std::vector<std::future<void>> helpers;  // each waits for its end when it goes
  while (options.turns && helpers.size() + 1 < count && options.turns->try_acquire()) {
    try {
      helpers.push_back(std::async(std::launch::async, beside));
    } catch (const std::system_error&) {  // no more threads to be had
      options.turns->release();
      break;
    }
  }
  all();
}

// The compilers that are found make code for this processor.
Status check_processor(const std::string& arch) {
  const target::InstructionSet* const set = target::instruction_set(arch);
  const target::InstructionSet& here = target::instruction_set_here();
  if (!set || set->processor == here.processor) return ok();
  return fail({ErrorCode::kWrongMachine, "the kernels are for another processor", arch,
               std::string(here.name), arch,
               "compile their source there, or with a cross compiler: warploom show --what "
               "source"});
}
}  // namespace

Result<Binary> compile(const LaunchList& list, const CompileOptions& options) {
  constexpr int kMostTimes = 4;
  const bool cpu = list.engine == Engine::cpu;
  if (cpu) WARPLOOM_CHECK(check_processor(list.arch));
  WARPLOOM_TRY(const Compiler compiler, cpu ? find_cpu_compiler() : find_cuda_compiler());
  const std::vector<Unit> units = units_of(list);
  std::vector<Result<Image>> images(units.size(), Image{});
  std::atomic<bool> refused = false;  // then no other compiler is started
  at_once(units.size(), options, [&](size_t i) {
    if (refused) return;
    const auto time = options.time * std::min(units[i].texts, kMostTimes);
    images[i] = cpu ? image_of({compiler, cpu_command(compiler, list.arch), "cpu", units[i].text,
                                time, options.foreign})
                    : compile_cuda(units[i].text, list.arch, options);
    if (!images[i]) refused = true;
  });
  for (const Result<Image>& image : images)
    if (!image) return fail(image.error());
  Binary binary{compiler.name, std::vector<std::string>(list.kernels.size())};
  for (size_t i = 0; i < units.size(); ++i)
    for (const size_t k : units[i].kernels) {
      if (!cpu) WARPLOOM_CHECK(judge(parse_ptxas(images[i]->log), options, list.kernels[k].name));
      binary.images[k] = images[i]->path.string();
    }
  return binary;
}

void set_helper_program(const std::filesystem::path& program) {
  program_of_helper = program.string();
}

const std::string& helper_program() {
  return program_of_helper;
}

std::string compiler_confinement() {
  return confinement_in_force();
}

bool compiler_main(int argc, char** argv, int* status) {
  if (argc < 2 || std::string_view(argv[1]) != kCompileCommand) return false;
  *status = 2;
  const auto source = argc == kArguments ? read_file(argv[7]) : Result<std::string>();
  if (argc != kArguments || !source) return true;
  const auto image = compile_cuda_in_process(*source, argv[2]);
  std::fputs(image ? image->log.c_str() : image.error().found.c_str(), stderr);
  *status = 1;
  const fs::path ptx = fs::path(argv[7]).replace_extension(kPtx);
  if (image) *status = write_file(argv[6], image->image) && write_file(ptx, image->ptx) ? 0 : 2;
  return true;
}

Result<Image> compile_cuda(const std::string& source, const std::string& arch,
                           const CompileOptions& options) {
  WARPLOOM_TRY(const Compiler compiler, find_cuda_compiler());
  std::vector<std::string> argv = {
      compiler.path, "-cubin", "-arch=" + arch, "-std=c++17", "-lineinfo", "-Xptxas", "-v"};
  if (compiler.nvrtc) argv = {helper_program(), kCompileCommand, arch};
  return image_of({compiler, std::move(argv), "ptx", source, options.time, options.foreign});
}

Result<Image> compile_shared_object(const std::string& source,
                                    const std::vector<std::string>& flags,
                                    const std::string& device, std::chrono::milliseconds time,
                                    bool foreign) {
  WARPLOOM_TRY(const Compiler compiler, find_cpu_compiler());
  std::vector<std::string> argv = {compiler.path};
  argv.insert(argv.end(), compiler.arguments.begin(), compiler.arguments.end());
  argv.insert(argv.end(), flags.begin(), flags.end());
  return image_of({compiler, std::move(argv), device, source, time, foreign});
}
}  // namespace warploom::runtime
