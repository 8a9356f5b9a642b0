#include "base/file.h"
#include "base/nearest.h"
#include "base/quoted.h"
#include "cli/command.h"
#include "onnx/load.h"
#include "search/explore.h"
#include "tile/print.h"
#include "vendor/make.h"
#include "vendor/match.h"

namespace warploom::cli {
namespace {
struct Flags {
  std::string file;
  std::string target = "auto";
  std::string track;
  std::string schedule;
  std::string what = "graph";
  ModelOptions model;
  int region = 1;
};

nlohmann::json json_of(const kernels::Space& space) {
  nlohmann::json fields = nlohmann::json::array();
  for (const auto& field : space.fields)
    fields.push_back({{"name", field.name}, {"values", field.values}, {"meaning", field.meaning}});
  return {{"family", space.family}, {"size", space.size()}, {"fields", fields}};
}

// Fields of a schedule that a person wrote which its family lacks: the others would be told of as
// missing.
Status fields_known(const kernels::Family& family, const kernels::Schedule& schedule) {
  std::vector<std::string> names;
  for (const auto& field : family.space().fields) names.push_back(field.name);
  for (const auto& [name, value] : schedule.fields)
    if (!contains(names, name))
      return fail({ErrorCode::kScheduleIllegal, "the family has no field of this name",
                   "--schedule", fmt::format("of {}: {}", schedule.family, listed(names)), name,
                   did_you_mean(name, names, "see them with `warploom show FILE --what space`")});
  return ok();
}

// The family that the schedule names, with all its fields.
Result<kernels::FamilyPtr> family_of(const kernels::Region& region,
                                     const kernels::Schedule& schedule,
                                     const target::Capabilities& capabilities) {
  kernels::FamilyPtr chosen = kernels::family_for(region, schedule.family, capabilities);
  std::vector<std::string> names;
  for (const auto& family : kernels::families_for(region, capabilities))
    names.push_back(family->name());
  if (!chosen)
    return fail({ErrorCode::kNoSchedule,
                 "the schedule's family does not cover the model on this target", "--schedule",
                 names.empty() ? "no family covers it" : "one of " + listed(names), schedule.family,
                 did_you_mean(schedule.family, names, "take another family or target")});
  WARPLOOM_CHECK(fields_known(*chosen, schedule));
  WARPLOOM_CHECK(chosen->validate(schedule));
  return chosen;
}

Answer answer_of(const Flags& flags, const nlohmann::json& json, std::string text) {
  nlohmann::json object = {{"file", flags.file}, {"what", flags.what}};
  object.update(json);
  return {object, std::move(text)};
}

// The regions that optimize searches, each with the families that cover it.
Answer show_regions(const Flags& flags, const search::Partition& partition, Track track,
                    const target::Capabilities& capabilities) {
  nlohmann::json regions = nlohmann::json::array();
  for (const search::Region& region : partition.regions) {
    std::vector<std::string> families;
    if (!region.alias)
      for (const auto& family : kernels::families_for({region.graph, track}, capabilities))
        families.push_back(family->name());
    const std::string& stored = region.tensors[region.graph.outputs[0]];
    regions.push_back({{"number", regions.size() + 1},
                       {"name", region.graph.name},
                       {"output", stored},
                       {"lies_in", region.alias ? partition.storage.at(stored) : ""},
                       {"families", families},
                       {"graph", to_text(region.graph)}});
  }
  const nlohmann::json json = {
      {"target", capabilities.arch}, {"track", name_of(track)}, {"regions", regions}};
  return answer_of(flags, json, text_of("regions", json));
}

// What each region would be timed beside, before anything runs.
Answer show_references(const Flags& flags, const graph::Graph& given,
                       const search::Partition& partition, Track track,
                       const target::Capabilities& capabilities) {
  const Engine engine = capabilities.gpu ? Engine::cuda : Engine::cpu;
  nlohmann::json regions = nlohmann::json::array();
  std::string text;
  for (const search::Region& region : partition.regions) {
    if (region.alias) continue;
    const vendor::VendorProblem problem = vendor::match_region(
        region.graph, vendor::operators_of(given, region.graph, region.tensors), track);
    const std::string reference = vendor::expected_reference(problem, engine);
    std::vector<std::string> calls;
    for (const vendor::Step& step : problem.steps) calls.push_back(words_of(step));
    regions.push_back({{"number", &region - partition.regions.data() + 1},
                       {"name", region.graph.name},
                       {"reference", reference},
                       {"calls", calls}});
    text += fmt::format("{:>3}  {}\n       {}\n", regions.back()["number"].get<int>(),
                        region.graph.name, reference);
  }
  nlohmann::json json = {
      {"target", capabilities.arch}, {"track", name_of(track)}, {"regions", regions}};
  if (regions.size() > 1) {
    const std::string whole = vendor::expected_reference(vendor::match(given, track), engine);
    json["whole"] = whole;
    text += fmt::format("the whole model at once\n       {}\n", whole);
  }
  return answer_of(flags, json, text);
}

// The command line that profiles a bundle's kernels, as data and to be copied.
Result<Answer> show_profile(const Flags& flags) {
  std::filesystem::path path = flags.file;
  WARPLOOM_TRY(const nlohmann::json plan, read_plan(path));
  WARPLOOM_TRY(const LaunchList list, launch_list_from_json(plan["launch_list"]));
  if (list.engine != Engine::cuda)
    return fail({ErrorCode::kFlagsContradict, "ncu profiles kernels of a GPU", flags.file,
                 "a bundle for a GPU", list.arch,
                 "profile the CPU's with perf: perf record warploom run BUNDLE"});
  std::vector<std::string> names;
  for (const Kernel& kernel : list.kernels) names.push_back(kernel.name);
  const std::string line = fmt::format(
      "ncu --set full --target-processes all --kernel-name 'regex:^({})$' warploom run {}",
      fmt::join(names, "|"), shell_word(path.parent_path().string()));
  return answer_of(flags, {{"kernels", names}, {"command", line}}, line + "\n");
}

// What a search would try first.
Result<kernels::Schedule> default_schedule(const kernels::Region& region,
                                           const target::Capabilities& capabilities) {
  const search::SearchSpace catalogue = search::catalogue_of(region, capabilities);
  search::SearchStrategy proposer(catalogue, search::Strategy::beam, 1);
  if (auto best = proposer.next()) return *std::move(best);
  return fail({ErrorCode::kNoSchedule, "no family of schedules covers the model on this target",
               region.graph.name, "a region that a family knows", graph::to_text(region.graph),
               "take another target or track"});
}

Result<Answer> show(const Flags& flags) {
  if (flags.what == "ncu") return show_profile(flags);
  WARPLOOM_TRY(graph::Graph graph, load_onnx(flags.file, flags.model));
  if (flags.what == "graph")
    return answer_of(flags, {{"graph", graph::to_text(graph)}}, graph::to_text(graph));
  WARPLOOM_TRY(const Track track, track_for(graph, flags.track));
  WARPLOOM_TRY(const target::Capabilities capabilities, search::resolve_target(flags.target));
  const graph::Graph given = graph;
  WARPLOOM_TRY(graph, search::planned(std::move(graph), capabilities));
  const std::string target = flags.target != "auto" ? flags.target
                             : capabilities.gpu     ? capabilities.arch
                                                    : "cpu";
  WARPLOOM_TRY(const search::Partition partition, search::regions_of(graph, track, capabilities));
  if (flags.what == "regions") return show_regions(flags, partition, track, capabilities);
  if (flags.what == "reference")
    return show_references(flags, given, partition, track, capabilities);
  const auto wanted = static_cast<size_t>(flags.region - 1);
  if (wanted >= partition.regions.size())
    return fail({ErrorCode::kUsage, "there is no such region", "--region",
                 fmt::format("1 to {}", partition.regions.size()), std::to_string(flags.region),
                 "see them with `warploom show FILE --what regions`"});
  const bool whole = partition.trivial(graph);  // then tensors keep their names
  const kernels::Region region{whole ? std::move(graph) : partition.regions[wanted].graph, track};
  if (flags.what == "space") {
    nlohmann::json json = {{"target", target}, {"families", nlohmann::json::array()}};
    for (const auto& family : kernels::families_for(region, capabilities))
      json["families"].push_back(json_of(family->space()));
    return answer_of(flags, json, text_of("space", json));
  }
  WARPLOOM_TRY(const kernels::Schedule schedule, flags.schedule.empty()
                                                     ? default_schedule(region, capabilities)
                                                     : parse_schedule(flags.schedule));
  WARPLOOM_TRY(const kernels::FamilyPtr chosen, family_of(region, schedule, capabilities));
  nlohmann::json json = {
      {"target", target}, {"track", name_of(track)}, {"schedule", schedule.text()}};
  std::string text = "// " + schedule.text() + "\n";
  if (flags.what == "program" || flags.what == "layouts") {
    WARPLOOM_TRY(const kernels::Family::Programs built, chosen->programs(schedule));
    for (const auto& program : built.programs) {
      json["programs"].push_back(tile::print(program));
      text += tile::print(program) + "\n";
      if (flags.what == "program") continue;
      WARPLOOM_TRY(const kernels::Lowered lowered, kernels::lower(program, capabilities));
      for (const auto& solution : lowered.solutions)
        json["instructions"].push_back(instructions(program, solution));
      json["solutions"].push_back(alternatives(program, lowered.solutions));
      text += layouts_text(program, lowered);
    }
    return answer_of(flags, json, text);
  }
  WARPLOOM_TRY(const LaunchList list, kernels::build(region, schedule, capabilities));
  json["predicted_us"] = list.predicted_us;
  if (flags.what == "cost")
    return answer_of(flags, json, fmt::format("{}predicted {:.1f} us\n", text, list.predicted_us));
  for (const auto& kernel : list.kernels)
    text += fmt::format("// {}: grid {}x{}x{}, {} threads, {} bytes of shared memory\n{}\n",
                        kernel.name, kernel.grid[0], kernel.grid[1], kernel.grid[2], kernel.threads,
                        kernel.shared_bytes, kernel.source);
  json["launch_list"] = to_json(list);
  return answer_of(flags, json, text);
}
}  // namespace

Command show_command() {
  const auto flags = std::make_shared<Flags>();
  return {
      "show",
      "a model's graph, its regions, their references, or one's schedule space, tile program, "
      "layouts, emitted "
      "source or predicted cost",
      "warploom show examples/matmul_small.textproto --what program --target cpu",
      {{"FILE", &flags->file, "an ONNX model, binary or .textproto; for ncu a bundle"},
       {"--what",
        &flags->what,
        "what to show",
        {"graph", "regions", "reference", "space", "program", "layouts", "source", "cost", "ncu"}},
       {"--region", &flags->region, "which one, from 1", {}, 1},
       {"--target", &flags->target, kTargetHelp},
       {"--dim", &flags->model.dims, kDimHelp},
       {"--assume", &flags->model.assume, kAssumeHelp},
       {"--track", &flags->track, kTrackHelp},
       {"--schedule", &flags->schedule, "\"FAMILY FIELD=VALUE …\"; default: the most promising"}},
      [flags](const Session&) { return show(*flags); }};
}
}  // namespace warploom::cli
