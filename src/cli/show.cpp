#include "base/file.h"
#include "base/nearest.h"
#include "base/quoted.h"
#include "cli/command.h"
#include "kernels/config/reader.h"
#include "onnx/load.h"
#include "search/search_strategy.h"
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
  std::vector<std::string> constants;
  int region = 1;
};

nlohmann::json json_of(const kernels::Family& family) {
  const kernels::Space space = family.space();
  nlohmann::json fields = nlohmann::json::array();
  for (const auto& field : space.fields) {
    const kernels::FieldInfo& row = family.type().fields[*family.type().find(field.name)];
    nlohmann::json values = nlohmann::json::array();
    for (const int64_t value : field.values) values.push_back(row.json_of(value));
    fields.push_back({{"name", field.name}, {"values", values}, {"meaning", field.meaning}});
  }
  return {{"family", space.family}, {"size", space.size()}, {"fields", fields}};
}

// The family that a schedule's text names.
Result<kernels::FamilyPtr> family_of(const kernels::Region& region, const std::string& name,
                                     const target::Capabilities& capabilities) {
  const auto all = kernels::families_for(region, capabilities);
  const auto found = std::ranges::find(all, name, &kernels::Family::name);
  if (found != all.end()) return *found;
  std::vector<std::string> names;
  for (const auto& family : all) names.push_back(family->name());
  return fail({ErrorCode::kNoSchedule,
               "the schedule's family does not cover the model on this target", "--schedule",
               names.empty() ? "no family covers it" : "one of " + listed(names), name,
               did_you_mean(name, names, "take another family or target")});
}

// A schedule's text, "": what a search would try first; and its family, which holds it to be legal.
struct Chosen {
  kernels::FamilyPtr family;
  kernels::KernelConfig config;
};

Answer answer_of(const Flags& flags, const nlohmann::json& json, std::string text) {
  nlohmann::json object = {{"file", flags.file}, {"what", flags.what}};
  object.update(json);
  return {object, std::move(text)};
}

// The regions that optimize searches, each with the families that cover it.
Answer show_regions(const Flags& flags, const plan::Partition& partition, Track track,
                    const target::Capabilities& capabilities) {
  nlohmann::json regions = nlohmann::json::array();
  for (const plan::Region& region : partition.regions) {
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
                       {"constants", region.constants},
                       {"graph", to_text(region.graph)}});
  }
  const nlohmann::json json = {
      {"target", capabilities.arch}, {"track", name_of(track)}, {"regions", regions}};
  return answer_of(flags, json, text_of("regions", json));
}

// What each region would be timed beside, before anything runs.
Answer show_references(const Flags& flags, const graph::Graph& given,
                       const plan::Partition& partition, Track track,
                       const target::Capabilities& capabilities) {
  const Engine engine = capabilities.gpu ? Engine::cuda : Engine::cpu;
  nlohmann::json regions = nlohmann::json::array();
  std::string text;
  for (const plan::Region& region : partition.regions) {
    if (region.alias) continue;
    const vendor::Problem problem = vendor::match_region(
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
Result<kernels::KernelConfig> default_config(const kernels::Region& region,
                                             const target::Capabilities& capabilities) {
  const search::SearchSpace catalogue = search::search_space_of(region, capabilities);
  search::SearchStrategy proposer(catalogue, search::Strategy::beam, 1);
  if (auto best = proposer.next()) return *std::move(best);
  return fail({ErrorCode::kNoSchedule, "no family of schedules covers the model on this target",
               region.graph.name, "a region that a family knows", graph::to_text(region.graph),
               "take another target or track"});
}

Result<Chosen> chosen_of(const std::string& schedule, const kernels::Region& region,
                         const target::Capabilities& capabilities) {
  Chosen out;
  if (schedule.empty()) {
    WARPLOOM_TRY(out.config, default_config(region, capabilities));
    WARPLOOM_TRY(out.family, family_of(region, out.config.family(), capabilities));
  } else {
    WARPLOOM_TRY(const kernels::RawConfig raw, kernels::read_raw(schedule));
    WARPLOOM_TRY(out.family, family_of(region, raw.family, capabilities));
    WARPLOOM_TRY(out.config, kernels::config_of(raw, out.family->type()));
  }
  WARPLOOM_CHECK(out.family->validate(out.config));
  return out;
}

Result<Answer> show(const Flags& flags) {
  if (flags.what == "ncu") return show_profile(flags);
  WARPLOOM_TRY(graph::Graph graph, load_onnx(flags.file, flags.model));
  if (flags.what == "graph")
    return answer_of(flags, {{"graph", graph::to_text(graph)}}, graph::to_text(graph));
  WARPLOOM_TRY(const Track track, track_for(graph, flags.track));
  WARPLOOM_TRY(const target::Capabilities capabilities, search::resolve_target(flags.target));
  const graph::Graph given = graph;
  WARPLOOM_TRY(graph, plan::lower_for_target(std::move(graph), capabilities));
  const std::string target = flags.target != "auto" ? flags.target
                             : capabilities.gpu     ? capabilities.arch
                                                    : "cpu";
  WARPLOOM_TRY(const plan::Partition partition,
               plan::regions_of(graph, track, capabilities, {},
                                {flags.constants.begin(), flags.constants.end()}));
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
      json["families"].push_back(json_of(*family));
    return answer_of(flags, json, text_of("space", json));
  }
  WARPLOOM_TRY(const Chosen chosen, chosen_of(flags.schedule, region, capabilities));
  const kernels::KernelConfig& schedule = chosen.config;
  nlohmann::json json = {
      {"target", target}, {"track", name_of(track)}, {"schedule", schedule.text()}};
  std::string text = "// " + schedule.text() + "\n";
  if (flags.what == "program" || flags.what == "layouts") {
    WARPLOOM_TRY(const kernels::Family::Programs built, chosen.family->programs(schedule));
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
       {"--constant", &flags->constants, kConstantHelp},
       {"--track", &flags->track, kTrackHelp},
       {"--schedule", &flags->schedule, "\"FAMILY FIELD=VALUE …\"; default: the most promising"}},
      [flags](const Session&) { return show(*flags); }};
}
}  // namespace warploom::cli
