// A launch list's images; compile_cuda with its cache, and the child process NVRTC runs in. The host program's hidden subcommand
// stands in for a compiler:
//
//   PROGRAM __compile ARCH -I HEADERS -o IMAGE SOURCE      its own headers it knows; what NVRTC and ptxas say goes to stderr
#include "runtime/compile.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/process.h"
#include "runtime/bound.h"
#include "runtime/compilers.h"
#include "runtime/disk_cache.h"
namespace warploom::runtime {
namespace fs = std::filesystem;
namespace {
Status judge(const PtxasReport& report, const CompileOptions& options, const std::string& kernel) {
  if (!report.warnings.empty())
    return fail({ErrorCode::kCompileFailed, "ptxas serialised the kernel's wgmma instructions", kernel,
                 "wgmma instructions in flight together", report.warnings.front(), "take another schedule"});
  for (const KernelFigures& figures : report.kernels)
    if (figures.spill_bytes > 0 && !options.allow_spills)
      return fail({ErrorCode::kCompileFailed, "registers spill to local memory", figures.name, "no spills",
                   fmt::format("{} bytes of spill stores and loads, {} registers", figures.spill_bytes, figures.registers),
                   "take a smaller tile or fewer threads"});
  return ok();
}

Result<std::string> image_of(const Kernel& kernel, const LaunchList& list, const CompileOptions& options) {
  if (list.engine == Engine::cpu)
    return compile_shared_object(kernel.source, cpu_compile_flags(), headers_of("cpu"), options.time)
        .map([](const fs::path& path) { return path.string(); });
  WARPLOOM_TRY(Image image, compile_cuda(kernel.source, list.arch, options));
  WARPLOOM_CHECK(judge(parse_ptxas(image.log), options, kernel.name));
  return std::move(image.bytes);
}

HeaderSet collected(std::string_view device) {
  HeaderSet set;
  std::string all;
  for (const EmbeddedFile& file : device_headers()) {
    const fs::path path = file.path, name = path.filename();
    if (path.parent_path() != device && path.parent_path() != "common") continue;
    set.files.push_back({name.string(), file.text});
    all += name.string() + '\0' + file.text + '\0';
  }
  set.key = hash_hex(all);
  return set;
}

// The set on disk, flat in one folder of the cache; written once.
Result<fs::path> header_folder(const HeaderSet& set) {
  const fs::path folder = cache_folder() / "headers" / set.key;
  const fs::path complete = folder / ".complete";
  std::error_code error;
  if (fs::exists(complete, error)) return folder;
  WARPLOOM_CHECK(make_folders(folder));
  for (const EmbeddedFile& file : set.files) WARPLOOM_CHECK(write_file(folder / file.path, file.text));
  WARPLOOM_CHECK(write_file(complete, ""));
  return folder;
}

tl::unexpected<Error> compiler_failed(const std::string& compiler, const ProcessResult& done, std::chrono::milliseconds time) {
  if (done.timed_out)
    return fail({ErrorCode::kCompileTimeout, "the compiler did not finish in time", compiler,
                 fmt::format("at most {} ms", time.count()), "still running", "allow more time or take a smaller schedule"});
  return fail({ErrorCode::kCompileFailed, "the compiler refused the source", compiler, "source that compiles",
               !done.err.empty() ? done.err
               : done.signal     ? fmt::format("it died of signal {}", done.signal)
                                 : fmt::format("exit status {}", done.exit_status),
               "report the schedule: emitted source should always compile"});
}

// Runs `argv` -I HEADERS -o IMAGE TEXT in a folder of its own, the source in a file with the name's ending `suffix`.
Result<Image> compile_text(const std::string& compiler, std::vector<std::string> argv, const HeaderSet& headers,
                           const std::string& source, const std::string& suffix, std::chrono::milliseconds time) {
  WARPLOOM_TRY(const fs::path folder, header_folder(headers));
  const ScratchFolder scratch("compile");
  const auto text = scratch.path() / ("kernels" + suffix), image = scratch.path() / "image";
  WARPLOOM_CHECK(write_file(text, source));
  argv.insert(argv.end(), {"-I", folder.string(), "-o", image.string(), text.string()});
  WARPLOOM_TRY(const ProcessResult done, run_process(argv, {.time = time}));
  if (!done.succeeded()) return compiler_failed(compiler, done, time);
  WARPLOOM_TRY(std::string bytes, read_file(image));
  return Image{std::move(bytes), done.out + done.err};
}

constexpr const char* kCompileCommand = "__compile";
constexpr int kArguments = 8;

std::string helper_program;

// What compile_cuda does not find in the cache.
Result<Image> made(const std::string& source, const std::string& arch, const CompileOptions& options, const Compiler& compiler) {
  std::vector<std::string> argv = {helper_program, kCompileCommand, arch};
  if (compiler.nvrtc && helper_program.empty()) return compile_cuda_in_process(source, arch);
  if (!compiler.nvrtc) argv = {compiler.path, "-cubin", "-arch=" + arch, "-std=c++17", "-lineinfo", "-Xptxas", "-v"};
  return compile_text(compiler.name, std::move(argv), headers_of("ptx"), source, ".cu", options.time);
}
}  // namespace
const HeaderSet& headers_of(const std::string& device) {
  static const std::map<std::string, HeaderSet> sets = {
      {"ptx", collected("ptx")}, {"cpu", collected("cpu")}, {"emulated", collected("emulated")}};
  return sets.at(device);
}

Result<Binary> compile(const LaunchList& list, const CompileOptions& options) {
  Binary binary{.engine = list.engine};
  WARPLOOM_TRY(const Compiler compiler, list.engine == Engine::cuda ? find_cuda_compiler() : find_cpu_compiler());
  binary.compiler = compiler.name;
  std::map<std::string, std::string> images;  // by source: several kernels may share one text
  for (const Kernel& kernel : list.kernels) {
    const auto [at, fresh] = images.try_emplace(kernel.source);
    if (fresh) { WARPLOOM_TRY(at->second, image_of(kernel, list, options)); }
    binary.images.push_back(at->second);
  }
  return binary;
}

void set_helper_program(const std::filesystem::path& program) { helper_program = program.string(); }

bool compiler_main(int argc, char** argv, int* status) {
  if (argc < 2 || std::string_view(argv[1]) != kCompileCommand) return false;
  *status = 2;
  const auto source = argc == kArguments ? read_file(argv[7]) : Result<std::string>();
  if (argc != kArguments || !source) return true;
  const auto image = compile_cuda_in_process(*source, argv[2]);
  std::fputs(image ? image->log.c_str() : image.error().found.c_str(), stderr);
  *status = !image ? 1 : write_file(argv[6], image->bytes) ? 0 : 2;
  return true;
}

Result<Image> compile_cuda(const std::string& source, const std::string& arch, const CompileOptions& options) {
  WARPLOOM_TRY(const Compiler compiler, find_cuda_compiler());
  const std::string key = hash_hex(fmt::format("cuda\n{}\n{}\n{}\n{}", compiler.name, arch, headers_of("ptx").key, source));
  DiskCache cache("cubin", ".cubin");
  if (auto entry = cache.find(key)) {
    // Gone again, if another process is shrinking the cache: then compile.
    if (auto cubin = read_file(entry->path)) return Image{std::move(*cubin), std::move(entry->log)};
  }
  WARPLOOM_TRY(Image image, made(source, arch, options, compiler));
  (void)cache.store(key, image.bytes, source, image.log);  // a full disk costs only time
  return image;
}

const std::vector<std::string>& cpu_compile_flags() {
  static const std::vector<std::string> flags = {"-O3",     "-march=native", "-mprefer-vector-width=512", "-std=c++20",
                                                 "-shared", "-fPIC",         "-fno-math-errno",           "-ffp-contract=fast"};
  return flags;
}

Result<fs::path> compile_shared_object(const std::string& source, const std::vector<std::string>& flags, const HeaderSet& headers,
                                       std::chrono::milliseconds time) {
  WARPLOOM_TRY(const Compiler compiler, find_cpu_compiler());
  std::vector<std::string> argv = {compiler.path};
  argv.insert(argv.end(), flags.begin(), flags.end());
  // What -march=native means here: images do not move between unlike machines that share a cache folder.
  static const std::string machine = proc_value("/proc/cpuinfo", "model name") + proc_value("/proc/cpuinfo", "flags");
  const std::string key =
      hash_hex(fmt::format("cpu\n{}\n{}\n{}\n{}\n{}", compiler.name, fmt::join(argv, " "), machine, headers.key, source));
  DiskCache cache("cpu", ".so");
  if (const auto entry = cache.find(key)) return entry->path;
  WARPLOOM_TRY(const Image image, compile_text(compiler.name, std::move(argv), headers, source, ".cpp", time));
  return cache.store(key, image.bytes, source, image.log);
}
}  // namespace warploom::runtime
