// Schedules and their spaces; and from a schedule to a launch list: programs, verified, synthesized and written as source for the target.

#include "codegen/emit.h"
#include "kernels/contraction.h"
#include "kernels/lower.h"
#include "tile/verify.h"
namespace warploom::kernels {
constexpr std::size_t kAlternatives = 8;  // solutions kept to choose from

std::string Schedule::text() const {
  std::string out = family;
  for (const auto& [name, value] : fields) out += fmt::format(" {}={}", name, value);
  return out;
}

nlohmann::json to_json(const Schedule& schedule) { return {{"family", schedule.family}, {"fields", schedule.fields}}; }

Result<Schedule> schedule_from_json(const nlohmann::json& json) {
  try {
    return Schedule{json.at("family").get<std::string>(), json.at("fields").get<std::map<std::string, std::int64_t>>()};
  } catch (const nlohmann::json::exception& error) {
    return fail({ErrorCode::kPlanInvalid, "a schedule cannot be read", "", "{\"family\": name, \"fields\": {name: integer}}",
                 error.what(), "make the plan again with `warploom optimize`"});
  }
}

std::int64_t field(const Schedule& schedule, const std::string& name, std::int64_t otherwise) {
  const auto found = schedule.fields.find(name);
  return found == schedule.fields.end() ? otherwise : found->second;
}

Status first_broken(const Schedule& schedule, std::initializer_list<Rule> rules) {
  for (const Rule& rule : rules)
    if (rule.broken)
      return fail({ErrorCode::kScheduleIllegal, "the schedule's fields cannot hold together", schedule.text(), rule.expected,
                   std::to_string(rule.found), "change one of the fields named"});
  return ok();
}

Status Family::fits(const Schedule& schedule, std::int64_t bytes) const {
  if (bytes <= capabilities_.shared_bytes) return ok();
  return fail({ErrorCode::kResourceLimit, "what a block keeps does not fit in shared memory, or a core's L2 cache",
               schedule.text(), fmt::format("at most {} bytes", capabilities_.shared_bytes), fmt::format("{} bytes", bytes),
               "use smaller tiles, or fewer stages"});
}

// Results of at most 16 bits take the faster exponential: it is off by 2^-22 + |x| 2^-24, and 0 below 2^-126.
Region::Region(graph::Graph primitive, Track of) : graph(std::move(primitive)), track(of) {
  std::vector<Nest> nests = nests_of(graph);
  for (Nest& nest : nests)
    for (NestValue& value : nest.values)
      if (value.kind == Kind::apply && value.op == ValueOp::exp &&
          (track == Track::bf16 || track == Track::fp16 || track == Track::fp8))
        value.op = ValueOp::fast_exp;
  nests_ = std::make_shared<const std::vector<Nest>>(std::move(nests));
}

Status Family::admits(const Schedule& schedule) const {
  for (const Field& field : space().fields) {
    const auto found = schedule.fields.find(field.name);
    const std::int64_t least = std::ranges::min(field.values);
    if (found == schedule.fields.end() || found->second < least)
      return fail({ErrorCode::kScheduleIllegal, "a field of the schedule is missing or too small", schedule.text(),
                   fmt::format("{} of at least {}: {}", field.name, least, field.meaning),
                   found == schedule.fields.end() ? "none" : std::to_string(found->second),
                   "`show --what space` lists the fields and their values"});
  }
  return legal(schedule);
}

std::int64_t Space::size() const {
  std::int64_t count = 1;
  for (const Field& field : fields)
    if (__builtin_mul_overflow(count, std::ssize(field.values), &count)) return INT64_MAX;
  return count;
}

BufferSpec spec_of(const graph::Tensor& tensor) { return {tensor.name, tensor.dtype, tensor.shape}; }

Result<Lowered> lower(const tile::Program& program, const target::Capabilities& capabilities, std::size_t which) {
  WARPLOOM_CHECK(tile::verify(program));
  Lowered out;
  out.list.engine = capabilities.gpu ? Engine::cuda : Engine::cpu;
  out.list.arch = capabilities.arch;
  for (const tile::Tensor& tensor : program.tensors)
    if (tensor.scope == tile::Scope::global)
      (tensor.writable ? out.list.outputs : out.list.inputs)
          .push_back({tensor.name, tensor.dtype, {tile::span_of(tensor.shape, tensor.strides)}});
  if (capabilities.gpu) {
    WARPLOOM_TRY(out.solutions, synth::synthesize_best(program, capabilities, kAlternatives));
    out.which = which < out.solutions.size() ? which : 0;
  }
  WARPLOOM_TRY(Kernel kernel, capabilities.gpu ? codegen::emit_cuda(program, out.solutions[out.which], capabilities)
                                               : codegen::emit_cpu(program, capabilities));
  out.list.kernels.push_back(std::move(kernel));
  return out;
}

std::vector<FamilyPtr> families_for(const Region& region, const Capabilities& capabilities) {
  std::vector<FamilyPtr> out;
  for (const auto& bind : {im2win_family, matmul_wgmma_family, matmul_mma_family, matmul_simt_family, rowwise_gpu_family,
                           rowwise_cpu_family, direct_family})
    if (FamilyPtr family = bind(region, capabilities)) out.push_back(std::move(family));
  return out;
}
FamilyPtr family_for(const Region& region, const std::string& name, const Capabilities& capabilities) {
  const auto all = families_for(region, capabilities);
  const auto found = std::ranges::find(all, name, &Family::name);
  return found == all.end() ? nullptr : *found;
}

Result<LaunchList> build(const Region& region, const Schedule& schedule, const target::Capabilities& capabilities) {
  const FamilyPtr family = family_for(region, schedule.family, capabilities);
  if (!family)
    return fail({ErrorCode::kNoSchedule, "the schedule's family does not cover the region on this target", schedule.text(),
                 "a family of this region and target", schedule.family, "make the plan again with `warploom optimize`"});
  WARPLOOM_CHECK(family->legal(schedule));
  WARPLOOM_TRY(Family::Programs made, family->programs(schedule));
  LaunchList list{capabilities.gpu ? Engine::cuda : Engine::cpu, capabilities.arch, {}, {}, made.workspaces, {}};
  const auto which = static_cast<std::size_t>(field(schedule, "solution"));
  for (const auto id : region.graph.inputs) list.inputs.push_back(spec_of(region.graph.tensor(id)));
  for (const auto id : region.graph.outputs) list.outputs.push_back(spec_of(region.graph.tensor(id)));
  bool as_asked = false;  // by one program at least: the small ones beside it have one solution
  for (std::size_t i = 0; i < made.programs.size(); ++i) {
    WARPLOOM_TRY(Lowered lowered, lower(made.programs[i], capabilities, which));
    as_asked |= lowered.which == which;
    Kernel& kernel = lowered.list.kernels[0];
    if (!lowered.solutions.empty()) list.predicted_us += lowered.solutions[lowered.which].cost.us;
    for (Argument& arg : kernel.args) {
      if (const auto buffer = made.buffers[i].find(arg.buffer); buffer != made.buffers[i].end()) arg.buffer = buffer->second;
      // Constants that kernels read are given to the plan like inputs.
      const auto id = region.graph.tensor_named(arg.buffer);
      if (id && region.graph.tensor(*id).constant &&
          std::ranges::find(list.inputs, arg.buffer, &BufferSpec::name) == list.inputs.end())
        list.inputs.push_back(spec_of(region.graph.tensor(*id)));
    }
    list.kernels.push_back(std::move(kernel));
  }
  if (!as_asked)
    return fail({ErrorCode::kScheduleIllegal, "synthesis found fewer solutions", schedule.text(),
                 fmt::format("solution={} among them", which), "none of that number", "take a lower number"});
  return list;
}

Work work_of(const Region& region) {
  Work work;
  const graph::Graph& graph = region.graph;
  const auto bytes = [&](graph::TensorId id) { return static_cast<double>(graph::byte_count(graph.tensor(id))); };
  const auto read = [&](graph::TensorId id) {  // movement may want a part alone: rows of a table, a slice
    double least = 0;
    for (const int n : graph.consumers(id)) {
      const graph::Node& node = graph.nodes[n];
      least += class_of(node.op) == graph::OpClass::movement ? bytes(node.outputs[0]) : bytes(id);
    }
    return std::min(least, bytes(id));
  };
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    const auto id = static_cast<graph::TensorId>(i);
    const bool given = std::ranges::find(graph.inputs, id) != graph.inputs.end();
    if (given || graph.tensor(id).constant) work.bytes += read(id);
  }
  for (const auto id : graph.outputs) work.bytes += bytes(id);
  for (const graph::Node& node : graph.nodes)
    if (class_of(node.op) == graph::OpClass::contraction || class_of(node.op) == graph::OpClass::convolution)
      work.flops += 2.0 * static_cast<double>(graph::element_count(graph.tensor(node.outputs[0]).shape)) *
                    static_cast<double>(graph::terms_of(graph, node));
  if (const auto c = contraction_of(region.nests(), true)) work.flops *= part_within(*c);
  return work;
}
}  // namespace warploom::kernels
