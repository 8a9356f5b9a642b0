#include "search/optimize.h"
#include "runtime/driver.h"
#include "search/explore.h"
namespace warploom::search {
namespace {
// The capabilities to plan for on the GPU that is here. A newer architecture than any that is known is planned for as the newest
// whose instructions it still has, and compiled under its own name.
Result<target::Capabilities> gpu_here() {
  WARPLOOM_TRY(const runtime::Driver* cuda, runtime::Driver::get());
  runtime::CUdevice device = 0;
  int major = 0, minor = 0;
  WARPLOOM_CUDA(*cuda, cuDeviceGet, &device, 0);
  WARPLOOM_CUDA(*cuda, cuDeviceGetAttribute, &major, runtime::kAttributeMajor, device);
  WARPLOOM_CUDA(*cuda, cuDeviceGetAttribute, &minor, runtime::kAttributeMinor, device);
  if (major < 8)
    return fail({ErrorCode::kGpuTooOld, "the GPU is older than the oldest target", "--target", "compute capability 8.0 or newer",
                 fmt::format("{}.{}", major, minor), "use --target cpu"});
  if (major == 9) return target::capabilities_of("sm_90a");
  WARPLOOM_TRY(target::Capabilities found, target::capabilities_of(major == 8 && minor == 9 ? "sm_89" : "sm_80"));
  if (major > 9) found.arch = fmt::format("sm_{}{}a", major, minor);
  return found;
}
}  // namespace
Result<target::Capabilities> resolve_target(const std::string& name) {
  if (name != "auto") return target::capabilities_of(name);
  if (auto here = gpu_here()) return here;
  return target::capabilities_of("cpu");
}

Track default_track(const graph::Graph& graph) {
  for (const auto& node : graph.nodes)
    if (node.op == graph::OpKind::DequantizeLinear) return Track::fp8;  // 8-bit operands, scaled
  bool bf16 = false, fp16 = false, fp8 = false;
  for (const auto id : graph.inputs) {
    const Dtype dtype = graph.tensor(id).dtype;
    if (!is_float(dtype)) continue;
    if (bits_of(dtype) >= 32) return Track::fp32;
    bf16 = bf16 || dtype == Dtype::bf16;
    fp16 = fp16 || dtype == Dtype::f16;
    fp8 = fp8 || bits_of(dtype) == 8;
  }
  return bf16 ? Track::bf16 : fp16 ? Track::fp16 : fp8 ? Track::fp8 : Track::fp32;
}

Result<Outcome> optimize(const graph::Graph& graph, const Options& options) {
  Problem problem;
  WARPLOOM_TRY(problem.catalogue.capabilities, resolve_target(options.target));
  const target::Capabilities& capabilities = problem.catalogue.capabilities;
  problem.catalogue.region = {graph, options.track};
  problem.catalogue.families = kernels::families_for(problem.catalogue.region, capabilities);
  if (problem.catalogue.families.empty())
    return fail({ErrorCode::kNoSchedule, "no family of schedules covers the graph on this target", graph.name,
                 "one matmul or softmax with pointwise operators around it",
                 fmt::format("{} operators, target {}, track {}", graph.nodes.size(), capabilities.arch, name_of(options.track)),
                 "take another target or track"});
  problem.catalogue.build = [region = problem.catalogue.region, capabilities](const kernels::Schedule& schedule) {
    return kernels::build(region, schedule, capabilities);
  };
  const kernels::Work work = kernels::work_of(problem.catalogue.region);
  verify::Setup& setup = problem.setup;
  setup.graph = graph;
  setup.track = options.track;
  setup.engine = capabilities.gpu ? Engine::cuda : Engine::cpu;
  setup.reference = vendor_match(graph, options.track);
  setup.floor_us = verify::floor_us(capabilities, options.track, work.flops, work.bytes);
  setup.flops = work.flops > 0 ? work.flops : work.bytes;
  setup.seed = options.seed;
  problem.roofline_us = verify::roofline_us(capabilities, options.track, work.flops, work.bytes);
  return explore(problem, options);
}

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Outcome, problem, target, device, reference, reference_us, best_us, speedup, error, max_error,
                                   reference_error, roofline_fraction, candidates, seconds, seed, interrupted)

nlohmann::json to_json(const Outcome& outcome) {
  nlohmann::json out = outcome;
  out["track"] = name_of(outcome.track);
  out["best_interval_us"] = {outcome.best_low_us, outcome.best_high_us};
  out["refused"] = outcome.refusals.size();
  out["schedule"] = outcome.schedule.text();
  return out;
}
}  // namespace warploom::search
