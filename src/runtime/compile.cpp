#include "runtime/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "runtime/cpu_compiler.h"
#include "runtime/nvrtc.h"

namespace warploom::runtime {
namespace {

Status judge(const PtxasReport& report, const CompileOptions& options, const std::string& kernel) {
  if (!report.warnings.empty() && !options.allow_warnings)
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

Result<Binary> compile_gpu(const LaunchList& list, const CompileOptions& options) {
  WARPLOOM_TRY(const CudaCompiler compiler, find_cuda_compiler());
  Binary binary{.engine = Engine::cuda, .compiler = compiler.name};
  std::map<std::string, std::size_t> seen;  // source: several kernels may share one text
  for (const Kernel& kernel : list.kernels) {
    const auto [at, fresh] = seen.try_emplace(kernel.source, binary.images.size());
    if (!fresh) {
      binary.images.push_back(binary.images[at->second]);
      continue;
    }
    WARPLOOM_TRY(CudaImage image, compile_cuda(kernel.source, list.arch, options));
    const PtxasReport report = parse_ptxas(image.log);
    WARPLOOM_CHECK(judge(report, options, kernel.name));
    for (const KernelFigures& figures : report.kernels) {
      binary.registers = std::max(binary.registers, figures.registers);
      binary.spills += figures.spill_bytes;
      binary.figures.push_back(figures);
    }
    binary.images.push_back(std::move(image.cubin));
    binary.log += image.log;
  }
  return binary;
}

Result<Binary> compile_cpu(const LaunchList& list, const CompileOptions& options) {
  WARPLOOM_TRY(const CpuCompiler compiler, find_cpu_compiler());
  Binary binary{.engine = Engine::cpu, .compiler = compiler.version};
  std::map<std::string, std::string> seen;  // source: several kernels may share one text
  for (const Kernel& kernel : list.kernels) {
    std::string& image = seen[kernel.source];
    if (image.empty()) {
      std::string log;
      WARPLOOM_TRY(const std::filesystem::path path, compile_shared_object(kernel.source, options, &log));
      image = path.string();
      binary.log += log;
    }
    binary.images.push_back(image);
    binary.figures.push_back({kernel.name, 0, 0, 0});
  }
  return binary;
}

}  // namespace

Result<Binary> compile(const LaunchList& list, const CompileOptions& options) {
  return list.engine == Engine::cuda ? compile_gpu(list, options) : compile_cpu(list, options);
}

}  // namespace warploom::runtime
