#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/error.h"
#include "base/nearest.h"
#include "base/quoted.h"
#include "base/rows.h"
#include "cli/command.h"
#include "cli/plan_record.h"
#include "codegen/launch_list.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "kernels/config/kernel_config.h"
#include "kernels/config/reader.h"
#include "kernels/family.h"
#include "kernels/lower.h"
#include "onnx/load.h"
#include "plan/boundaries.h"
#include "plan/boundary_change.h"
#include "plan/fusion.h"
#include "plan/region.h"
#include "search/action/action.h"
#include "search/action/plan_actions.h"
#include "search/choice_search.h"
#include "search/optimize.h"
#include "search/search_space.h"
#include "search/strategy/strategy.h"
#include "target/capabilities.h"
#include "tile/print.h"
#include "tile/program.h"
#include "vendor/make.h"
#include "vendor/match.h"
#include "vendor/problem.h"

namespace warploom::cli {
namespace {
using graph::Graph;
using kernels::FamilyPtr;
using kernels::KernelConfig;
using nlohmann::json;
using target::Capabilities;
using tile::Program;
using vendor::VendorProblem;

struct Flags {
  std::string file;
  std::string target = "auto";
  std::string track;
  std::string schedule;
  std::string what = "graph";
  ModelOptions model;
  std::vector<std::string> constants;
  std::string boundaries;
  int region = 1;
};

json json_of(const kernels::Family& family) {
  const auto space = family.space();
  json fields = json::array();
  const auto& type = family.type();
  for (const auto& field : space.fields) {
    const kernels::FieldInfo& info = type.fields[*type.find(field.name)];
    json values = json::array();
    for (const int64_t value : field.values)
      values.push_back(info.json_of(value));
    json row;
    row["name"] = field.name;
    row["values"] = std::move(values);
    row["meaning"] = field.meaning;
    fields.push_back(std::move(row));
  }
  json out;
  out["family"] = space.family;
  out["size"] = space.size();
  out["fields"] = std::move(fields);
  return out;
}

// The family that a schedule's text names.
Result<FamilyPtr> family_of(const kernels::Region& region, const std::string& name,
                            const Capabilities& capabilities) {
  const auto all = kernels::families_for(region, capabilities);
  const auto found = std::ranges::find(all, name, &kernels::Family::name);
  if (found != all.end()) return *found;
  std::vector<std::string> names;
  for (const auto& family : all)
    names.push_back(family->name());
  Error error{ErrorCode::kNoSchedule};
  error.message = "the schedule's family does not cover the model on this target";
  error.place = "--schedule";
  error.expected = names.empty() ? "no family covers it" : "one of " + listed(names);
  error.found = name;
  error.remedy = did_you_mean(name, names, "take another family or target");
  return fail(error);
}

// A schedule's text, "": what a search would try first; and its family, which holds it to be legal.
struct Chosen {
  FamilyPtr family;
  KernelConfig config;
};

Answer answer_of(const Flags& flags, const json& record, std::string text) {
  json object = {{"file", flags.file}, {"what", flags.what}};
  object.update(record);
  return {object, std::move(text)};
}

// A model, its regions as optimize searches them, and what they are shown for.
struct Shown {
  Graph given;  // as the model has it
  Graph graph;  // as it is planned
  Track track = Track::fp32;
  Capabilities capabilities;
  plan::Partition partition;

  json record() const { return {{"target", capabilities.arch}, {"track", name_of(track)}}; }

  std::vector<std::string> families_of(const plan::Region& region) const {
    std::vector<std::string> names;
    if (region.alias) return names;
    for (const auto& family : kernels::families_for({region.graph, track}, capabilities))
      names.push_back(family->name());
    return names;
  }
};

// The regions, each with the families that cover it.
Answer show_regions(const Flags& flags, const Shown& shown) {
  json regions = json::array();
  for (const plan::Region& region : shown.partition.regions) {
    const std::string& stored = region.tensors[region.graph.outputs[0]];
    json row;
    row["number"] = regions.size() + 1;
    row["name"] = region.graph.name;
    row["output"] = listed(region.stored());
    const auto offset = shown.partition.offsets.find(stored);
    std::string memory = region.alias ? shown.partition.storage.at(stored) : "";
    if (region.alias && offset != shown.partition.offsets.end())
      memory += fmt::format(", from byte {}", offset->second);
    if (memory == stored) memory = "what it joins";
    row["lies_in"] = memory;
    row["families"] = shown.families_of(region);
    row["constants"] = region.constants;
    row["graph"] = to_text(region.graph);
    regions.push_back(std::move(row));
  }
  json record = shown.record();
  record["regions"] = std::move(regions);
  return answer_of(flags, record, text_of("regions", record));
}

// The changes of boundaries that can be made, and those that cannot, with the rule.
Result<Answer> show_boundaries(const Flags& flags, const Shown& shown) {
  const std::set<std::string> constants(flags.constants.begin(), flags.constants.end());
  const plan::BoundaryChanges& changes = shown.partition.changes;
  WARPLOOM_TRY(plan::Boundaries boundaries,
               plan::boundaries_of(shown.graph, shown.track, shown.capabilities, {}, constants));
  json rows = json::array();
  for (const plan::BoundaryOption& option : boundaries.options(changes)) {
    json row = to_json(search::action_of(option));
    row["name"] = to_text(option.changes.front());
    row["changes"] = plan::to_json(option.changes);
    row["refused"] = nullptr;
    if (option.refusal)
      row["refused"] = {{"rule", plan::name_of(option.refusal->rule)},
                        {"expected", plan::words_of(option.refusal->rule)},
                        {"found", option.refusal->found}};
    rows.push_back(std::move(row));
  }
  json record = shown.record();
  record["changed"] = to_text(changes);
  record["boundaries"] = std::move(rows);
  json shown_record = record;
  for (json& row : shown_record["boundaries"])
    if (row["refused"].is_null()) row.erase("refused");
  return answer_of(flags, record, text_of("boundaries", shown_record));
}

// What each region would be timed beside, before anything runs.
Answer show_references(const Flags& flags, const Shown& shown) {
  const Engine engine = shown.capabilities.gpu ? Engine::cuda : Engine::cpu;
  json regions = json::array();
  std::string text;
  int number = 0;
  for (const plan::Region& region : shown.partition.regions) {
    ++number;
    if (region.alias) continue;
    const auto operators = vendor::operators_of(shown.given, region.graph, region.tensors);
    const VendorProblem problem = vendor::match_region(region.graph, operators, shown.track);
    const std::string reference = vendor::expected_reference(problem, engine);
    std::vector<std::string> calls;
    for (const vendor::Step& step : problem.steps)
      calls.push_back(words_of(step));
    json row;
    row["number"] = number;
    row["name"] = region.graph.name;
    row["reference"] = reference;
    row["calls"] = calls;
    regions.push_back(std::move(row));
    text += fmt::format("{:>3}  {}\n       {}\n", number, region.graph.name, reference);
  }
  const bool several = regions.size() > 1;
  json record = shown.record();
  record["regions"] = std::move(regions);
  if (several) {
    const VendorProblem problem = vendor::match(shown.given, shown.track);
    const std::string whole = vendor::expected_reference(problem, engine);
    record["whole"] = whole;
    text += fmt::format("the whole model at once\n       {}\n", whole);
  }
  return answer_of(flags, record, text);
}

// The command line that profiles a bundle's kernels, as data and to be copied.
Result<Answer> show_profile(const Flags& flags) {
  std::filesystem::path path = flags.file;
  WARPLOOM_TRY(const json plan, read_plan(path));
  WARPLOOM_TRY(const LaunchList list, launch_list_from_json(plan["launch_list"]));
  if (list.engine != Engine::cuda)
    return fail({ErrorCode::kFlagsContradict, "ncu profiles kernels of a GPU", flags.file,
                 "a bundle for a GPU", list.arch,
                 "profile the CPU's with perf: perf record warploom run --trust BUNDLE"});
  std::vector<std::string> names;
  for (const Kernel& kernel : list.kernels)
    names.push_back(kernel.name);
  const std::string bundle = shell_word(path.parent_path().string());
  const std::string line = fmt::format(
      "ncu --set full --target-processes all --kernel-name 'regex:^({})$' warploom run {}",
      fmt::join(names, "|"), bundle);
  return answer_of(flags, {{"kernels", names}, {"command", line}}, line + "\n");
}

// What a search would try first.
Result<KernelConfig> default_config(const kernels::Region& region,
                                    const Capabilities& capabilities) {
  const auto catalogue = search::search_space_of(region, capabilities);
  const search::StrategyPtr proposer =
      search::make_strategy(search::Strategy::beam, {.space = &catalogue, .seed = 1});
  if (auto best = proposer->ask()) return std::move(best->config);
  Error error{ErrorCode::kNoSchedule};
  error.message = "no family of schedules covers the model on this target";
  error.place = region.graph.name;
  error.expected = "a region that a family knows";
  error.found = graph::to_text(region.graph);
  error.remedy = "take another target or track";
  return fail(error);
}

Answer show_space(const Flags& flags, const kernels::Region& region, const std::string& target,
                  const Capabilities& capabilities) {
  json record = {{"target", target}, {"families", json::array()}};
  for (const auto& family : kernels::families_for(region, capabilities))
    record["families"].push_back(json_of(*family));
  return answer_of(flags, record, text_of("space", record));
}

// The tile programs under a schedule and, where `layouts` are asked for, what synthesis makes of
// them. Both are added to what is there.
Status add_programs(json& record, std::string& text, const std::vector<Program>& programs,
                    const Capabilities& capabilities, bool layouts) {
  for (const Program& program : programs) {
    const std::string printed = tile::print(program);
    record["programs"].push_back(printed);
    text += printed + "\n";
    if (!layouts) continue;
    WARPLOOM_TRY(const kernels::Lowered lowered, kernels::lower(program, capabilities));
    for (const auto& solution : lowered.solutions)
      record["instructions"].push_back(instructions(program, solution));
    record["solutions"].push_back(alternatives(program, lowered.solutions));
    text += layouts_text(program, lowered);
  }
  return ok();
}

// A kernel's text under its launch, as a comment.
std::string source_text(const Kernel& kernel) {
  const std::string grid = fmt::format("{}", fmt::join(kernel.grid, "x"));
  return fmt::format("// {}: grid {}, {} threads, {} bytes of shared memory\n{}\n", kernel.name,
                     grid, kernel.threads, kernel.shared_bytes, kernel.source);
}

Result<Chosen> chosen_of(const std::string& schedule, const kernels::Region& region,
                         const Capabilities& capabilities) {
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

// One region under a config: its program, layouts, cost or source.
Result<Answer> show_schedule(const Flags& flags, const kernels::Region& region,
                             const std::string& target, const Capabilities& capabilities) {
  WARPLOOM_TRY(const Chosen chosen, chosen_of(flags.schedule, region, capabilities));
  const KernelConfig& config = chosen.config;
  json record;
  record["target"] = target;
  record["track"] = name_of(region.track);
  record["schedule"] = config.text();
  std::string text = "// " + config.text() + "\n";
  if (flags.what == "program" || flags.what == "layouts") {
    WARPLOOM_TRY(const kernels::Family::Programs built, chosen.family->programs(config));
    WARPLOOM_CHECK(
        add_programs(record, text, built.programs, capabilities, flags.what == "layouts"));
    return answer_of(flags, record, text);
  }
  WARPLOOM_TRY(const LaunchList list, kernels::build(region, config, capabilities));
  record["predicted_us"] = list.predicted_us;
  record["card"] = target::card_to_json(capabilities);
  const std::string on = capabilities.gpu ? " on a card " + capabilities.card : "";
  if (flags.what == "cost")
    return answer_of(flags, record,
                     fmt::format("{}predicted {:.1f} us{}\n", text, list.predicted_us, on));
  for (const Kernel& kernel : list.kernels)
    text += source_text(kernel);
  record["launch_list"] = to_json(list);
  return answer_of(flags, record, text);
}

// The target's name as it was given; of `auto` what it stands for.
std::string target_name(const Flags& flags, const Capabilities& capabilities) {
  if (flags.target != "auto") return flags.target;
  return capabilities.gpu ? capabilities.arch : "cpu";
}

Result<Shown> planned(const Flags& flags, Graph given) {
  Shown shown;
  WARPLOOM_TRY(shown.track, track_for(given, flags.track));
  WARPLOOM_TRY(shown.capabilities, search::resolve_target(flags.target));
  WARPLOOM_TRY(shown.graph, plan::lower_for_target(given, shown.capabilities));
  const std::set<std::string> constants(flags.constants.begin(), flags.constants.end());
  WARPLOOM_TRY(const auto changes, plan::boundaries_from_text(flags.boundaries));
  auto partition =
      plan::regions_of(shown.graph, shown.track, shown.capabilities, {}, constants, changes);
  WARPLOOM_TRY(shown.partition, std::move(partition));
  shown.given = std::move(given);
  return shown;
}

// What a search could do to the graph, and what it would try.
Result<Answer> show_rewrites(const Flags& flags, const Graph& given) {
  WARPLOOM_TRY(const Track track, track_for(given, flags.track));
  WARPLOOM_TRY(const Capabilities capabilities, search::resolve_target(flags.target));
  WARPLOOM_TRY(const Graph graph, plan::primitives_for_target(given, capabilities));
  const std::set<std::string> constants(flags.constants.begin(), flags.constants.end());
  json record = plan_actions_record(search::rewrite_actions(graph, track, constants));
  record["choices"] = json::array();
  for (const auto& one : search::offered_choices(graph, track, capabilities, constants))
    record["choices"].push_back(
        {{"choice", one.choice.text()}, {"predicted_us", one.predicted_us}});
  return answer_of(flags, record, text_of("rewrites", record));
}

Result<Answer> show(const Flags& flags) {
  if (flags.what == "ncu") return show_profile(flags);
  WARPLOOM_TRY(Graph given, load_onnx(flags.file, flags.model));
  if (flags.what == "graph") {
    const std::string text = graph::to_text(given);
    return answer_of(flags, {{"graph", text}}, text);
  }
  if (flags.what == "rewrites") return show_rewrites(flags, given);
  WARPLOOM_TRY(const Shown shown, planned(flags, std::move(given)));
  if (flags.what == "regions") return show_regions(flags, shown);
  if (flags.what == "boundaries") return show_boundaries(flags, shown);
  if (flags.what == "reference") return show_references(flags, shown);
  const auto& regions = shown.partition.regions;
  const auto wanted = as_size(flags.region - 1);
  if (wanted >= regions.size()) {
    Error error{ErrorCode::kUsage, "there is no such region", "--region"};
    error.expected = fmt::format("1 to {}", regions.size());
    error.found = std::to_string(flags.region);
    error.remedy = "see them with `warploom show FILE --what regions`";
    return fail(error);
  }
  const bool whole = shown.partition.trivial(shown.graph);  // then tensors keep their names
  const kernels::Region region{whole ? shown.graph : regions[wanted].graph, shown.track};
  const std::string target = target_name(flags, shown.capabilities);
  if (flags.what == "space") return show_space(flags, region, target, shown.capabilities);
  return show_schedule(flags, region, target, shown.capabilities);
}
}  // namespace

Command show_command() {
  const auto flags = std::make_shared<Flags>();
  Command command;
  command.name = "show";
  command.help =
      "a model's graph, how it could be rewritten, its regions, their boundaries, their "
      "references, "
      "or one's schedule space, tile program, layouts, emitted source or predicted cost";
  command.example = "warploom show examples/matmul_small.textproto --what program --target cpu";
  const std::vector<std::string> stages = {"graph",     "rewrites", "regions", "boundaries",
                                           "reference", "space",    "program", "layouts",
                                           "source",    "cost",     "ncu"};
  command.flags = {
      {"FILE", &flags->file, "an ONNX model, binary or .textproto; for ncu a bundle"},
      {"--what", &flags->what, "what to show", stages},
      {"--region", &flags->region, "which one, from 1", {}, 1},
      {"--boundaries", &flags->boundaries,
       "between regions, where they are not fusion's: \"cut_region t3; join_regions a + b\""},
      {"--target", &flags->target, kTargetHelp},
      {"--dim", &flags->model.dims, kDimHelp},
      {"--assume", &flags->model.assume, kAssumeHelp},
      {"--constant", &flags->constants, kConstantHelp},
      {"--track", &flags->track, kTrackHelp},
      {"--schedule", &flags->schedule, "\"FAMILY FIELD=VALUE …\"; default: the most promising"}};
  command.action = [flags](const Session&) { return show(*flags); };
  return command;
}
}  // namespace warploom::cli
