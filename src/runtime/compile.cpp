#include "runtime/compile.h"
#include "runtime/cpu_compiler.h"
#include "runtime/nvrtc.h"

namespace warploom::runtime {
namespace {

Status judge(const PtxasReport& report, const CompileOptions& options, const std::string& kernel) {
  if (!report.warnings.empty())
    return fail({ErrorCode::kCompileFailed, "ptxas serialised the kernel's wgmma instructions", kernel,
                 "wgmma instructions in flight together", report.warnings.front(), "take another schedule"});
  for (const KernelFigures& figures : report.kernels)
    if (figures.spill_bytes > 0 && !options.allow_spills)
      return fail(
          {ErrorCode::kCompileFailed, "registers spill to local memory", figures.name, "no spills",
           fmt::format("{} bytes of spill stores and loads, {} registers", figures.spill_bytes, figures.registers),
           "take a smaller tile or fewer threads"});
  return ok();
}

// The image of one kernel's text; its figures and the compiler's name go into `binary`.
Result<std::string> image_of(const Kernel& kernel, const LaunchList& list, const CompileOptions& options,
                             Binary& binary) {
  if (list.engine == Engine::cpu) {
    WARPLOOM_TRY(const auto path,
                 compile_shared_object(kernel.source, cpu_compile_flags(), headers_of("cpu"), options.time));
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
  if (engine == Engine::cuda)
    return find_cuda_compiler().map([](const CudaCompiler& compiler) { return compiler.name; });
  return find_cpu_compiler().map([](const CpuCompiler& compiler) { return compiler.version; });
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

}  // namespace warploom::runtime
