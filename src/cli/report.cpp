// `warploom report`: what the page (report/page.h) shows of a bundle and of the archive. Layouts
// and figures of regions are worked out again of the plan's model.
#include <fmt/format.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>
#include "archive/archive.h"
#include "base/casts.h"
#include "base/error.h"
#include "base/file.h"
#include "base/units.h"
#include "cli/command.h"
#include "graph/graph.h"
#include "graph/rewrite.h"
#include "graph/track.h"
#include "kernels/config/kernel_config.h"
#include "kernels/config/reader.h"
#include "kernels/family.h"
#include "kernels/lower.h"
#include "onnx/load.h"
#include "plan/boundary_change.h"
#include "plan/fusion.h"
#include "plan/region.h"
#include "report/figures.h"
#include "report/history.h"
#include "report/page.h"
#include "report/table.h"
#include "runtime/plan_file.h"
#include "search/headline.h"
#include "synth/synthesize.h"
#include "target/capabilities.h"
#include "target/card.h"
#include "target/instruction_set.h"
#include "tile/print.h"
#include "tile/program.h"
#include "verify/setup.h"

namespace warploom::cli {
namespace {
using nlohmann::json;
using plan::Partition;
using report::Facts;
using target::Capabilities;
using tile::Program;

constexpr int64_t kDrawn = 16;  // rows and columns of a layout

struct Flags {
  std::optional<std::string> bundle;
  std::string archive;
  std::string out = "report.html";
};

const char* const kNameArchive = "Name the archive that the search wrote with --archive.";

// The problems of the archive that the page is of: a bundle's regions, or all.
std::vector<std::string> keys_of(const Facts& facts, const Flags& flags,
                                 const std::vector<archive::Problem>& problems) {
  std::vector<std::string> keys;
  if (!flags.bundle)
    for (const archive::Problem& problem : problems)
      keys.push_back(problem.key);
  for (const json& region : report::list_at(facts.plan, "/regions"))
    keys.push_back(report::text_at(region, "/key"));
  // Plans of programs before this one name the problem of their boundaries apart.
  for (const char* place : {"/plans_key", "/boundaries/key"})
    if (std::string key = report::text_at(facts.plan, place); !key.empty())
      keys.push_back(std::move(key));
  return keys;
}

Status add_history(Facts& facts, const Flags& flags) {
  auto from = archive_at(flags.archive);
  const bool none = !from && from.error().code == ErrorCode::kFileMissing;
  if (none && flags.bundle && flags.archive.empty()) {
    facts.notes.push_back(std::string("The history of the search is missing: the cache folder has "
                                      "no archive. ") +
                          kNameArchive);
    return ok();
  }
  if (!from) return fail(from.error());
  WARPLOOM_TRY(const auto problems, from->problems());
  const auto keys = keys_of(facts, flags, problems);
  const char* const empty =
      flags.bundle ? "The plan lists no regions." : "The archive holds no problem yet.";
  if (keys.empty()) facts.notes.push_back(empty);
  for (const std::string& key : keys) {
    const auto problem = std::ranges::find(problems, key, &archive::Problem::key);
    if (problem != problems.end()) {
      WARPLOOM_TRY(json history, report::history_of(*from, *problem));
      facts.histories.push_back(std::move(history));
    } else if (key.empty()) {
      facts.notes.push_back(
          "The plan does not say which problems of the archive its regions are: make it again.");
    } else {
      facts.notes.push_back(fmt::format("The archive has no problem {}. {}", key, kNameArchive));
    }
  }
  return ok();
}

// A tile program, and what synthesis chose for it.
Result<json> program_of(const Program& written, const std::string& region, size_t solution,
                        const Capabilities& capabilities) {
  const std::string text = tile::print(written);
  // Parsed again, its statements know their lines.
  const Program program = tile::parse(text).value_or(written);
  WARPLOOM_TRY(const kernels::Lowered lowered, kernels::lower(program, capabilities, solution));
  json row;
  row["name"] = written.name;
  row["region"] = region;
  row["text"] = text;
  row["notes"] = json::array();
  if (lowered.solutions.empty()) {
    row["notes"].push_back("On the CPU synthesis has no layouts to choose.");
    return row;
  }
  const synth::Solution& chosen = lowered.solutions[lowered.which];
  row["tables"]["instructions"] = report::table("instructions", instructions(program, chosen));
  row["layouts"] = drawn(program, chosen, kDrawn);
  return row;
}

// The tile programs behind a region's kernels.
Status add_programs(Facts& facts, const kernels::Region& region,
                    const kernels::KernelConfig& schedule, const Capabilities& capabilities) {
  const auto family = kernels::family_for(region, schedule.family(), capabilities);
  if (!family) return ok();
  WARPLOOM_CHECK(family->validate(schedule));
  WARPLOOM_TRY(const auto made, family->programs(schedule));
  const size_t solution = family->layout_candidate(schedule);
  for (const Program& written : made.programs) {
    WARPLOOM_TRY(json row, program_of(written, region.graph.name, solution, capabilities));
    facts.programs.push_back(std::move(row));
  }
  return ok();
}

// Operations of products; where there are none, one an element that is made.
double operations_of(const kernels::Region& region, double flops) {
  if (flops > 0) return flops;
  int64_t elements = 0;
  for (const graph::Node& node : region.graph.nodes) {
    const auto& made = region.graph.tensor(node.outputs[0]);
    elements += graph::element_count(made.shape);
  }
  return as_double(elements);
}

// What bounds a region's time: arithmetic, or the traffic that no cache can hold back. What fits in
// the cache has no bound by memory that is known.
void add_bound(json& row, const kernels::Region& region, const kernels::Work& work,
               const Capabilities& capabilities) {
  const auto us = report::positive_at(row, "/best_us");
  const double arithmetic = verify::roofline_us(capabilities, region.track, work.flops, 0);
  const double memory = verify::roofline_us(capabilities, region.track, 0, work.bytes);
  const bool cached = work.bytes <= as_double(capabilities.l2_bytes);
  const bool by_memory = memory > arithmetic;
  row["bound"] = "arithmetic";
  if (by_memory) row["bound"] = cached ? "cache" : "DRAM";
  if (by_memory && cached) {
    const std::string bytes = bytes_text(work.bytes);
    const std::string cache = bytes_text(as_double(capabilities.l2_bytes));
    row["why_unknown"]["part"] =
        fmt::format("its {} fit in a cache of {}, whose rate is not measured", bytes, cache);
    return;
  }
  const double least = std::max(arithmetic, memory);
  if (us && least > 0) row["part"] = least / *us;
  if (us && least > *us)
    row["why_unknown"]["part"] = "faster than the bound: it is none on this machine";
}

json region_row(const json& planned, const kernels::Region& region,
                const Capabilities& capabilities) {
  json row;
  for (const char* key : {"name", "times", "key", "best_us", "reference_us", "best_interval_us"})
    row[key] = report::at(planned, std::string("/") + key);
  const std::string reference = report::text_at(planned, "/reference");
  row["reference"] = reference == "none" ? "" : reference;
  const auto best = report::positive_at(planned, "/best_us");
  const auto low = report::positive_at(planned, "/best_interval_us/0");
  const auto high = report::positive_at(planned, "/best_interval_us/1");
  row["spread"] = report::json_of(report::spread_of(best, low, high));
  const auto work = kernels::work_of(region);
  const double operations = operations_of(region, work.flops);
  row["operations"] = operations;
  row["bytes"] = work.bytes;
  row["intensity"] = operations / work.bytes;
  if (const auto us = report::positive_at(row, "/best_us")) {
    row["tflops"] = operations / *us / 1e6;
    row["gbs"] = work.bytes / *us / 1e3;
  }
  add_bound(row, region, work, capabilities);
  return row;
}

// What is known of one region: what the plan says of it, `planned`, and what its graph gives.
void add_region(Facts& facts, const json& planned, const kernels::Region& region,
                const Capabilities& capabilities) {
  const std::string& name = region.graph.name;
  if (report::text_at(planned, "/name") != name) {
    // Made where there are more num_sms, or by another program.
    facts.notes.push_back("The plan has no figures of " + name +
                          ", which this machine would make of its model.");
    return;
  }
  facts.regions.push_back(region_row(planned, region, capabilities));
  const auto schedule = kernels::config_from_json(planned.value("schedule", json()));
  Status done = ok();
  if (schedule)
    done = add_programs(facts, region, *schedule, capabilities);
  else
    done = fail(schedule.error());
  if (done) return;
  facts.notes.push_back("The layouts of " + name + " are missing. " + describe(done.error()));
}

// Regions that are alike stand once.
void add_each_region(Facts& facts, const Partition& partition, Track track,
                     const Capabilities& capabilities) {
  const json& planned = report::list_at(facts.plan, "/regions");
  std::set<std::string> seen;
  for (const plan::Region& one : partition.regions) {
    if (one.alias || !seen.insert(one.identity).second) continue;
    const size_t place = seen.size() - 1;
    const json row = place < planned.size() ? planned[place] : json();
    add_region(facts, row, {one.graph, track}, capabilities);
  }
}

// The card that a plan was measured on; of plans before there were any in it by the device's name.
target::Capabilities card_of_plan(target::Capabilities capabilities, const json& plan) {
  const json& recorded = report::at(plan, "/card");
  if (recorded.is_object()) return target::with_card(std::move(capabilities), recorded);
  const target::Card* const card = target::card_of_device(report::text_at(plan, "/device"));
  const auto listed = card ? target::capabilities_of(std::string(card->name)) : capabilities;
  return listed.value_or(capabilities);
}

// What the plan's model gives: operations and bytes of each region, programs and layouts.
Status add_regions(Facts& facts) {
  const std::string model = report::text_at(facts.plan, "/model");
  const std::string arch = report::text_at(facts.plan, "/launch_list/arch");
  if (model.empty()) return fail({ErrorCode::kPlanInvalid, "the plan does not hold its model"});
  WARPLOOM_TRY(graph::Graph graph, parse_onnx(model, "the plan's model"));
  const bool is_known = arch.starts_with("sm_") || target::instruction_set(arch);
  WARPLOOM_TRY(target::Capabilities capabilities, target::capabilities_of(is_known ? arch : "cpu"));
  capabilities = card_of_plan(std::move(capabilities), facts.plan);
  const Track track = *track_named(report::text_at(facts.plan, "/track"));
  std::vector<graph::Rewrite> rewrites;
  for (const json& text : report::list_at(facts.plan, "/rewrites")) {
    WARPLOOM_TRY(graph::Rewrite one, graph::rewrite_from_text(
                                         text.is_string() ? text.get<std::string>() : text.dump()));
    rewrites.push_back(std::move(one));
  }
  WARPLOOM_TRY(graph, plan::lower_for_target(std::move(graph), capabilities, track, rewrites));
  std::set<std::string> constants;
  for (const json& name : report::list_at(facts.plan, "/constant"))
    if (name.is_string()) constants.insert(name.get<std::string>());
  plan::BoundaryChanges changes;
  if (const json& recorded = report::at(facts.plan, "/boundaries/changes"); recorded.is_array())
    WARPLOOM_TRY(changes, plan::boundaries_from_json(recorded));
  WARPLOOM_TRY(const Partition partition,
               plan::regions_of(graph, track, capabilities, {}, constants, changes));
  const target::Measured& measured = capabilities.measured;
  facts.roofs = {{"gbs", capabilities.dram_gbs},
                 {"measured_gbs", measured.copy_gbs > 0 ? json(measured.copy_gbs) : json()},
                 {"card", capabilities.card},
                 {"tflops", 1 / verify::roofline_us(capabilities, track, 1e6, 0)},
                 {"cache_bytes", capabilities.l2_bytes}};
  add_each_region(facts, partition, track, capabilities);
  return ok();
}

// A page may be written over, any other file not.
Status may_write(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return ok();
  const Result<std::string> there = read_file(path);
  if (there && there->find("warploom report") != there->npos) return ok();
  return fail({ErrorCode::kFileUnwritable, "the file is there already and is no report",
               path.string(), "a new file, or a report to be written anew", "another file",
               "name another by --out"});
}

Result<Answer> made_report(const Flags& flags) {
  WARPLOOM_CHECK(may_write(flags.out));
  Facts facts{
      .title = "All problems of the archive", .headline = "", .version = std::string(kVersion)};
  if (flags.bundle) {
    std::filesystem::path path = *flags.bundle;
    WARPLOOM_TRY(facts.plan, read_plan(path));
    const std::string problem = report::text_at(facts.plan, "/problem");
    facts.title = problem.empty() ? path.string() : problem;
    facts.headline = search::headline(facts.plan);
  }
  WARPLOOM_CHECK(add_history(facts, flags));
  if (!flags.bundle)
    facts.notes.push_back("Roofline, kernels and layouts are of a bundle: name one to see them.");
  else if (const Status done = add_regions(facts); !done)
    facts.notes.push_back("Roofline, programs and layouts are missing. " + describe(done.error()));
  const size_t problems = facts.histories.size();
  WARPLOOM_CHECK(write_file(flags.out, report::page_of(std::move(facts))));
  return Answer{{{"file", flags.out}, {"problems", problems}}, flags.out + "\n"};
}

Result<Answer> report_of(const Flags& flags) {
  if (!flags.bundle) return made_report(flags);
  return runtime::reading_plan(*flags.bundle, [&] { return made_report(flags); });
}
}  // namespace

Command report_command() {
  const auto flags = std::make_shared<Flags>();
  Command command;
  command.name = "report";
  command.help =
      "one offline HTML page of what a search did: times, lineage, refusals, roofline, kernels, "
      "layouts, what to try next";
  command.example = "warploom report out/matmul_small --out report.html";
  command.flags = {{"BUNDLE", &flags->bundle,
                    "a bundle's folder or its plan.json; without one, all that the archive knows"},
                   {"--archive", &flags->archive,
                    "the archive that the search wrote; default: in the cache folder"},
                   {"--out", &flags->out, "the page; default: report.html"}};
  command.action = [flags](const Session&) { return report_of(*flags); };
  return command;
}
}  // namespace warploom::cli
