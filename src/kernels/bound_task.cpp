#include "kernels/bound_task.h"
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>
#include "base/error.h"
#include "codegen/emit.h"
#include "codegen/launch_list.h"
#include "graph/graph.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "kernels/lower.h"
#include "synth/synthesize.h"
#include "tile/program.h"
#include "tile/verify.h"

namespace warploom::kernels {
namespace {
using tile::Program;

constexpr size_t kAlternatives = 8;  // solutions of synthesis to choose from
constexpr size_t kKept = 64;         // configs whose synthesis is kept until they are built

using Solutions = std::vector<synth::Solution>;

Result<Solutions> solved(const Program& program, const Capabilities& capabilities) {
  WARPLOOM_CHECK(tile::verify(program));
  return capabilities.gpu ? synth::synthesize_best(program, capabilities, kAlternatives)
                          : Solutions();
}

// Of so many the one asked for, or the first where there are fewer.
size_t taken(size_t which, const Solutions& solutions) {
  return which < solutions.size() ? which : 0;
}

Result<Kernel> emitted(const Program& program, const Solutions& solutions, size_t which,
                       const Capabilities& capabilities) {
  if (!capabilities.gpu) return codegen::emit_cpu(program, capabilities);
  return codegen::emit_cuda(program, solutions[taken(which, solutions)], capabilities);
}
}  // namespace

struct BoundTask::Synthesized {
  Family::Programs programs;
  std::vector<Solutions> solutions;  // of each program; none for the CPU
  size_t which = 0;                  // of them
  SpecialValues special = SpecialValues::exact;

  double us() const {
    double us = 0;
    for (const Solutions& each : solutions)
      if (!each.empty()) us += each[taken(which, each)].cost.us;
    return us;
  }
};

BoundTask::BoundTask(Region region, const Capabilities& capabilities)
    : region_(std::move(region)),
      capabilities_(capabilities),
      families_(families_for(region_, capabilities)) {}

BoundTask::~BoundTask() = default;

Result<BoundTask::SynthesizedPtr> BoundTask::synthesized(const KernelConfig& config) const {
  const auto family = std::ranges::find(families_, config.family(), &Family::name);
  if (family == families_.end())
    return fail({ErrorCode::kNoSchedule,
                 "the schedule's family does not cover the region on this target", config.text(),
                 "a family of this region and target", config.family(),
                 "make the plan again with `warploom optimize`"});
  WARPLOOM_CHECK((*family)->legal(config));
  auto made = std::make_shared<Synthesized>();
  made->which = (*family)->layout_candidate(config);
  made->special = (*family)->special_values(config);
  WARPLOOM_TRY(made->programs, (*family)->programs(config));
  // By one program at least: the small ones beside it have one solution.
  bool as_asked = !capabilities_.gpu;
  for (const Program& program : made->programs.programs) {
    WARPLOOM_TRY(Solutions solutions, solved(program, capabilities_));
    as_asked |= made->which < solutions.size();
    made->solutions.push_back(std::move(solutions));
  }
  if (!as_asked)
    return fail({ErrorCode::kScheduleIllegal, "synthesis found fewer solutions", config.text(),
                 fmt::format("number {} among them", made->which), "none of that number",
                 "take a lower number"});
  return made;
}

void BoundTask::keep(const std::string& config, SynthesizedPtr made) const {
  const std::scoped_lock lock(mutex_);
  kept_[config] = std::move(made);
  if (kept_.size() <= kKept) return;
  const auto us = [](const auto& each) { return each.second->us(); };
  kept_.erase(std::ranges::max_element(kept_, {}, us));
}

BoundTask::SynthesizedPtr BoundTask::take(const std::string& config) const {
  const std::scoped_lock lock(mutex_);
  const auto found = kept_.find(config);
  if (found == kept_.end()) return nullptr;
  SynthesizedPtr made = std::move(found->second);
  kept_.erase(found);
  return made;
}

Result<double> BoundTask::predicted_us(const KernelConfig& config) const {
  WARPLOOM_TRY(SynthesizedPtr made, synthesized(config));
  const double us = made->us();
  if (capabilities_.gpu) keep(config.text(), std::move(made));
  return us;
}

Result<Kernel> BoundTask::kernel_of(const Synthesized& made, size_t number) const {
  WARPLOOM_TRY(Kernel kernel, emitted(made.programs.programs[number], made.solutions[number],
                                      made.which, capabilities_));
  const auto& buffers = made.programs.buffers[number];
  for (Argument& arg : kernel.args)
    if (const auto buffer = buffers.find(arg.buffer); buffer != buffers.end())
      arg.buffer = buffer->second;
  return kernel;
}

Result<LaunchList> BoundTask::build(const KernelConfig& config) const {
  SynthesizedPtr made = take(config.text());
  if (!made) WARPLOOM_TRY(made, synthesized(config));
  const auto& graph = region_.graph;
  LaunchList list;
  list.engine = capabilities_.gpu ? Engine::cuda : Engine::cpu;
  list.arch = capabilities_.arch;
  list.workspaces = made->programs.workspaces;
  list.predicted_us = made->us();
  list.special = made->special;
  for (const auto id : graph.inputs)
    list.inputs.push_back(spec_of(graph.tensor(id)));
  for (const auto id : graph.outputs)
    list.outputs.push_back(spec_of(graph.tensor(id)));
  for (size_t i = 0; i < made->solutions.size(); ++i) {
    WARPLOOM_TRY(Kernel kernel, kernel_of(*made, i));
    // Constants that kernels read are given to the plan like inputs.
    for (const Argument& arg : kernel.args) {
      const auto id = graph.tensor_named(arg.buffer);
      if (!id || !graph.tensor(*id).constant) continue;
      const auto given = std::ranges::find(list.inputs, arg.buffer, &BufferSpec::name);
      if (given == list.inputs.end()) list.inputs.push_back(spec_of(graph.tensor(*id)));
    }
    list.kernels.push_back(std::move(kernel));
  }
  return list;
}

Result<double> predicted_us(const Region& region, const KernelConfig& config,
                            const Capabilities& capabilities) {
  return BoundTask(region, capabilities).predicted_us(config);
}

Result<LaunchList> build(const Region& region, const KernelConfig& config,
                         const Capabilities& capabilities) {
  return BoundTask(region, capabilities).build(config);
}

Result<Lowered> lower(const Program& program, const Capabilities& capabilities, size_t which) {
  Lowered out;
  WARPLOOM_TRY(out.solutions, solved(program, capabilities));
  out.which = taken(which, out.solutions);
  out.list.engine = capabilities.gpu ? Engine::cuda : Engine::cpu;
  out.list.arch = capabilities.arch;
  for (const tile::Tensor& tensor : program.tensors) {
    if (tensor.scope != tile::Scope::global) continue;
    const int64_t elements = tile::span_of(tensor.shape, tensor.strides);
    auto& buffers = tensor.writable ? out.list.outputs : out.list.inputs;
    buffers.push_back({tensor.name, tensor.dtype, {elements}});
  }
  WARPLOOM_TRY(Kernel kernel, emitted(program, out.solutions, which, capabilities));
  out.list.kernels.push_back(std::move(kernel));
  return out;
}
}  // namespace warploom::kernels
