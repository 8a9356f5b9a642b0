// A launch list's images; compile_cuda with its cache, and the child process NVRTC runs in. The host program's hidden subcommand
// stands in for a compiler:
//
//   PROGRAM __compile ARCH -I HEADERS -o IMAGE SOURCE      its own headers it knows; what NVRTC and ptxas say goes to stderr
#include "runtime/compile.h"
#include "base/file.h"
#include "base/hash.h"
#include "runtime/cpu_compiler.h"
#include "runtime/disk_cache.h"
#include "runtime/nvrtc.h"
namespace warploom::runtime {
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

// The image of one kernel's text; its figures and the compiler's name go into `binary`.
Result<std::string> image_of(const Kernel& kernel, const LaunchList& list, const CompileOptions& options, Binary& binary) {
  if (list.engine == Engine::cpu) {
    WARPLOOM_TRY(const auto path, compile_shared_object(kernel.source, cpu_compile_flags(), headers_of("cpu"), options.time));
    binary.figures.push_back({kernel.name, 0, 0, 0});
    return path.string();
  }
  WARPLOOM_TRY(Image image, compile_cuda(kernel.source, list.arch, options));
  const PtxasReport report = parse_ptxas(image.log);
  WARPLOOM_CHECK(judge(report, options, kernel.name));
  for (const KernelFigures& figures : report.kernels) {
    binary.registers = std::max(binary.registers, figures.registers);
    binary.spills += figures.spill_bytes;
    binary.figures.push_back(figures);
  }
  return std::move(image.bytes);
}

Result<std::string> compiler_name(Engine engine) {
  if (engine == Engine::cuda) return find_cuda_compiler().map([](const CudaCompiler& compiler) { return compiler.name; });
  return find_cpu_compiler().map([](const CpuCompiler& compiler) { return compiler.version; });
}

constexpr const char* kCompileCommand = "__compile";
constexpr int kArguments = 8;

std::string helper_program;

// What compile_cuda does not find in the cache.
Result<Image> made(const std::string& source, const std::string& arch, const CompileOptions& options,
                   const CudaCompiler& compiler) {
  std::vector<std::string> argv = {helper_program, kCompileCommand, arch};
  if (compiler.nvrtc && helper_program.empty()) return compile_cuda_in_process(source, arch);
  if (!compiler.nvrtc) argv = {compiler.path, "-cubin", "-arch=" + arch, "-std=c++17", "-lineinfo", "-Xptxas", "-v"};
  return compile_text(compiler.name, std::move(argv), headers_of("ptx"), source, ".cu", options.time);
}
}  // namespace
Result<Binary> compile(const LaunchList& list, const CompileOptions& options) {
  Binary binary{.engine = list.engine};
  WARPLOOM_TRY(binary.compiler, compiler_name(list.engine));
  std::map<std::string, std::string> images;  // by source: several kernels may share one text
  for (const Kernel& kernel : list.kernels) {
    const auto [at, fresh] = images.try_emplace(kernel.source);
    if (fresh) { WARPLOOM_TRY(at->second, image_of(kernel, list, options, binary)); }
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
  WARPLOOM_TRY(const CudaCompiler compiler, find_cuda_compiler());
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
}  // namespace warploom::runtime
