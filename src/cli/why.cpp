#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>
#include "archive/archive.h"
#include "base/error.h"
#include "base/rows.h"
#include "cli/command.h"
#include "cli/plan_record.h"
#include "graph/graph.h"
#include "graph/rewrite.h"
#include "graph/track.h"
#include "kernels/config/constraints.h"
#include "kernels/config/kernel_config.h"
#include "kernels/config/reader.h"
#include "kernels/family.h"
#include "onnx/load.h"
#include "plan/boundaries.h"
#include "plan/fusion.h"
#include "plan/region.h"
#include "report/lineage.h"
#include "search/action/action.h"
#include "search/action/actions_of.h"
#include "search/action/plan_actions.h"
#include "search/lineage.h"
#include "search/optimize.h"
#include "search/plan_archive.h"
#include "search/plan_choice.h"
#include "search/search_space.h"
#include "target/capabilities.h"

namespace warploom::cli {
namespace {
using archive::Archive;
using nlohmann::json;
using target::Capabilities;

struct Flags {
  std::string file;
  std::string target = "auto";
  std::string track;
  std::string schedule;
  std::string archive;
  ModelOptions model;
};

// What kernels are asked about.
struct Asked {
  Track track = Track::fp32;
  const Capabilities& capabilities;
};

// The step that led to a candidate, and what became of it.
json step_of(const archive::Candidate& one, size_t number) {
  json out;
  out["number"] = number;
  out["schedule"] = one.schedule;
  out["kind"] = one.action.is_object() ? one.action.value("kind", "") : "";
  out["sentence"] = one.action.is_object() ? one.action.value("sentence", "") : "";
  out["stage"] = one.stage;
  out["error_code"] = one.error_code;
  out["round"] = nullptr;
  out["chance"] = nullptr;
  out["policy"] = nullptr;
  for (const char* key : {"round", "chance", "policy"})
    if (one.proposed.is_object() && one.proposed.contains(key)) out[key] = one.proposed[key];
  out["difference"] = report::difference_of(one.action);
  out["median_us"] = nullptr;
  if (one.median_us) out["median_us"] = *one.median_us;
  return out;
}

json refused_of(const search::RefusedAction& one) {
  json constraints = json::array();
  for (const kernels::FailedConstraint& failed : one.why) {
    std::vector<std::string> fields;
    for (const size_t field : failed.fields)
      fields.emplace_back(one.action.type->fields[field].name);
    constraints.push_back(
        {{"expected", failed.expected}, {"found", failed.found}, {"fields", fields}});
  }
  return {{"sentence", one.action.sentence},
          {"kind", to_json(one.action)["kind"]},
          {"constraints", constraints}};
}

// What children a config had in the search: how many were tried, and how many were faster.
json tried_of(const std::vector<archive::Candidate>& all, const archive::Candidate& of) {
  int tried = 0;
  int faster = 0;
  for (const archive::Candidate& one : all) {
    if (!contains(one.parents, of.schedule)) continue;
    ++tried;
    const bool is_faster = one.median_us && of.median_us && *one.median_us < *of.median_us;
    faster += is_faster ? 1 : 0;
  }
  return {{"tried", tried}, {"faster", faster}};
}

// Of which earlier problem's best the first step was, in words; null: it was a guess, or drawn.
json began_by(const std::vector<archive::Run>& runs, const std::string& schedule) {
  for (const archive::Run& run : runs) {
    if (!run.near.is_array()) continue;
    for (const json& one : run.near) {
      if (one.value("schedule", "") != schedule) continue;
      const std::string from = one.value("from", "");
      const std::string brought = from.empty() ? "" : ", brought by " + from;
      return fmt::format("{} on {} ({}), {:.2f} away{}", one.value("name", ""),
                         one.value("device", ""), one.value("track", ""),
                         one.value("distance", 0.0), brought);
    }
  }
  return {};
}

// A lineage as rows, each with what was tried from there.
json steps_of(const std::vector<archive::Candidate>& all, const search::Lineage& steps) {
  json out = json::array();
  for (size_t i = 0; i < steps.size(); ++i) {
    json step = step_of(steps[i], i);
    step.update(tried_of(all, steps[i]));
    out.push_back(std::move(step));
  }
  return out;
}

Error unknown_problem(const std::string& place) {
  Error error{ErrorCode::kFileMissing, "the archive knows nothing of this", place};
  error.expected = "a candidate of an earlier search";
  error.found = "none";
  error.remedy = "search first with `warploom optimize`, or name its archive with --archive";
  return error;
}

// The wanted candidate, "": the best; from where it came, and what else could not be done to it.
Result<json> region_record(Archive& from, const archive::Problem& problem, const Flags& flags,
                           const search::SearchSpace& space) {
  WARPLOOM_TRY(const auto all, from.candidates(problem.key));
  WARPLOOM_TRY(const auto best, from.best(problem.key));
  WARPLOOM_TRY(const auto runs, from.runs(problem.key));
  std::string wanted = flags.schedule;
  if (wanted.empty() && best) wanted = best->schedule;
  const search::Lineage steps = search::lineage_of(all, wanted);
  if (steps.empty()) return fail(unknown_problem(wanted.empty() ? problem.name : wanted));
  json out;
  out["name"] = problem.name;
  out["problem"] = problem.key;
  out["schedule"] = wanted;
  out["steps"] = steps_of(all, steps);
  out["began"] = began_by(runs, steps[0].schedule);
  out["refused"] = json::array();
  const auto config = kernels::config_from_text(wanted);
  if (!config) return out;
  for (const search::RefusedAction& one : search::actions_of(space, *config).refused)
    out["refused"].push_back(refused_of(one));
  return out;
}

// How a whole plan came to be, and what else could be done to it or not.
Result<json> plan_record(Archive& from, const search::KnownPlan& known,
                         const search::PlanActions& rewrites,
                         const search::PlanActions& boundaries) {
  WARPLOOM_TRY(const auto all, from.candidates(known.problem.key));
  json out;
  out["name"] = known.problem.name;
  out["problem"] = known.problem.key;
  out["schedule"] = known.schedule;
  out["steps"] = steps_of(all, search::lineage_of(all, known.schedule));
  out.update(plan_actions_record(rewrites));
  const json more = plan_actions_record(boundaries);
  for (const char* key : {"legal", "refused"})
    out[key].insert(out[key].end(), more[key].begin(), more[key].end());
  return out;
}

// What is known of the whole plan: of the one that is asked for, else of what was chosen.
Result<std::optional<search::KnownPlan>> plan_of(Archive& from, const graph::Graph& given,
                                                 const Asked& asked, const std::string& schedule) {
  const std::string& arch = asked.capabilities.arch;
  WARPLOOM_TRY(auto known, search::known_plan(from, given, asked.track, arch));
  const auto choice = search::choice_from_text(schedule);
  if (known && choice) {
    known->choice = *choice;
    known->schedule = schedule;
  }
  if (known && (choice || known->is_of_run)) return known;
  // A program before this one told of boundaries elsewhere.
  const search::PlanChoice chosen = known ? known->choice : search::PlanChoice();
  WARPLOOM_TRY(const graph::Graph cut,
               plan::lower_for_target(given, asked.capabilities, asked.track, chosen.rewrites));
  WARPLOOM_TRY(auto older, search::older_partition(from, cut, asked.track, arch));
  if (!older) return known;
  if (choice) {
    older->choice = *choice;
    older->schedule = schedule;
  }
  older->choice.rewrites = chosen.rewrites;
  return older;
}

// Of each of a partition's different regions that the archive knows.
Result<json> region_records(Archive& from, const std::vector<archive::Problem>& problems,
                            const plan::Partition& partition, const Asked& asked,
                            const Flags& flags) {
  json regions = json::array();
  std::set<std::string> seen;
  for (const plan::Region& region : partition.regions) {
    if (region.alias || !seen.insert(region.identity).second) continue;
    const std::string text = graph::to_text(region.graph);
    const auto is_same = [&](const archive::Problem& one) {
      const bool is_track = one.track == name_of(asked.track);
      const bool is_target = one.target == asked.capabilities.arch;
      return one.text == text && is_track && is_target && !search::is_of_plans(one);
    };
    const auto problem = std::ranges::find_if(problems, is_same);
    if (problem == problems.end()) continue;
    const auto space = search::search_space_of({region.graph, asked.track}, asked.capabilities);
    WARPLOOM_TRY(json row, region_record(from, *problem, flags, space));
    regions.push_back(std::move(row));
  }
  return regions;
}

// What became of the whole plan; null: nothing is known of one.
Result<json> known_plan_record(Archive& from, const std::optional<search::KnownPlan>& known,
                               const graph::Graph& given, const Asked& asked,
                               plan::Boundaries& boundaries) {
  if (!known) return json();
  const search::PlanChoice& choice = known->choice;
  WARPLOOM_TRY(graph::Graph primitives, plan::primitives_for_target(given, asked.capabilities));
  WARPLOOM_TRY(primitives, graph::rewrite(std::move(primitives), choice.rewrites, asked.track));
  return plan_record(from, *known, search::rewrite_actions(primitives, asked.track),
                     search::boundary_actions(boundaries, choice.boundaries));
}

// What people read: nothing of a beginning that is not known.
json told(json record) {
  for (json& row : record["regions"])
    if (row["began"].is_null()) row.erase("began");
  return record;
}

Result<Answer> why(const Flags& flags) {
  WARPLOOM_TRY(const graph::Graph given, load_onnx(flags.file, flags.model));
  WARPLOOM_TRY(const Track track, track_for(given, flags.track));
  WARPLOOM_TRY(const Capabilities capabilities, search::resolve_target(flags.target));
  const Asked asked{track, capabilities};
  WARPLOOM_TRY(Archive from, archive_at(flags.archive));
  WARPLOOM_TRY(const auto known, plan_of(from, given, asked, flags.schedule));
  const search::PlanChoice choice = known ? known->choice : search::PlanChoice();
  WARPLOOM_TRY(const graph::Graph graph,
               plan::lower_for_target(given, capabilities, track, choice.rewrites));
  WARPLOOM_TRY(plan::Boundaries boundaries, plan::boundaries_of(graph, track, capabilities));
  WARPLOOM_TRY(const plan::Partition partition, boundaries.under(choice.boundaries));
  WARPLOOM_TRY(const json plan, known_plan_record(from, known, given, asked, boundaries));
  Flags regional = flags;
  if (search::choice_from_text(flags.schedule)) {
    if (!known || plan["steps"].empty()) return fail(unknown_problem(flags.schedule));
    regional.schedule.clear();
  }
  WARPLOOM_TRY(const auto problems, from.problems());
  WARPLOOM_TRY(const json regions, region_records(from, problems, partition, asked, regional));
  if (regions.empty()) return fail(unknown_problem(flags.file));
  const json record = {{"file", flags.file}, {"plan", plan}, {"regions", regions}};
  return Answer{record, text_of("why", told(record))};
}
}  // namespace

Command why_command() {
  const auto flags = std::make_shared<Flags>();
  Command command;
  command.name = "why";
  command.help =
      "which steps led to a kernel in an earlier search, what became of each, and which steps are "
      "refused from there, with the constraints";
  command.example = "warploom why examples/conv_relu_maxpool.textproto --target cpu";
  command.flags = {
      {"FILE", &flags->file, "the ONNX model that was searched"},
      {"--schedule", &flags->schedule, "of this candidate; default: each region's best"},
      {"--target", &flags->target, kTargetHelp},
      {"--track", &flags->track, kTrackHelp},
      {"--dim", &flags->model.dims, kDimHelp},
      {"--assume", &flags->model.assume, kAssumeHelp},
      {"--archive", &flags->archive, "the archive file; default: in the cache folder"}};
  command.action = [flags](const Session&) { return why(*flags); };
  return command;
}
}  // namespace warploom::cli
