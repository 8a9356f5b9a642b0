#include "search/boundary_archive.h"
#include <fmt/format.h>
#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "archive/archive.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/rows.h"
#include "codegen/launch_list.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "plan/boundary_change.h"
#include "runtime/executor.h"
#include "search/action/boundary_action.h"
#include "search/boundary_search.h"
#include "search/options.h"
#include "search/strategy/strategy.h"
#include "search/task_archive.h"
#include "target/capabilities.h"

namespace warploom::search {
namespace {
constexpr std::string_view kHead = "boundaries: ";
constexpr std::string_view kAsFused = "as fused";

// Another kind of search than one that only its budget ends, whose end says nothing.
bool is_limited(const Options& options) {
  return options.max_candidates > 0 || options.strategy != Strategy::automatic ||
         options.has_model();
}
}  // namespace

std::string schedule_of(const plan::BoundaryChanges& changes) {
  return fmt::format("{}{}", kHead, changes.empty() ? kAsFused : to_text(changes));
}

std::optional<plan::BoundaryChanges> changes_of(const std::string& schedule) {
  if (!schedule.starts_with(kHead)) return std::nullopt;
  const std::string text = schedule.substr(kHead.size());
  if (text == kAsFused) return plan::BoundaryChanges{};
  auto changes = plan::boundaries_from_text(text);
  return changes ? std::optional(*std::move(changes)) : std::nullopt;
}

std::string boundary_key(const graph::Graph& graph, const Options& options,
                         const target::Capabilities& capabilities, const std::string& device) {
  const std::string_view track = name_of(options.track);
  return hash_hex(fmt::format("boundaries|{}|{}|{}|{}|{}|{}", graph::to_text(graph), track,
                              capabilities.arch, device, capabilities.num_sms,
                              listed(options.constants)));
}

Result<BoundaryArchive> BoundaryArchive::open(const graph::Graph& graph, const Options& options,
                                              const target::Capabilities& capabilities) {
  const Engine engine = capabilities.gpu ? Engine::cuda : Engine::cpu;
  WARPLOOM_TRY(const auto device, runtime::Executor::describe(engine));
  std::filesystem::path path(options.archive);
  if (path.empty()) path = cache_folder() / "archive.sqlite";
  WARPLOOM_TRY(auto archive, archive::Archive::open(path));
  BoundaryArchive out(std::move(archive), options);
  archive::Problem& problem = out.problem_;
  problem.key = boundary_key(graph, options, capabilities, device.name);
  problem.name = graph.name;
  problem.track = name_of(options.track);
  problem.target = capabilities.arch;
  problem.device = device.name;
  problem.text = graph::to_text(graph);
  out.run_.problem = problem.key;
  WARPLOOM_CHECK(out.look_up());
  return out;
}

Status BoundaryArchive::add() {
  return archive_.add_problem(problem_);
}

Status BoundaryArchive::look_up() {
  const std::string stamp = build_stamp();
  run_.seed = options_->seed;
  run_.environment = stamp;
  run_.budget_seconds = is_limited(*options_) ? 0 : options_->budget_seconds;
  run_.known_best = schedule_of({});
  if (!options_->resume) return ok();
  WARPLOOM_TRY(const std::vector<archive::Run> runs, archive_.runs(run_.problem));
  WARPLOOM_TRY(const auto known, archive_.candidates(run_.problem));
  for (const archive::Candidate& row : known)
    rows_[row.schedule] = row;
  for (const archive::Run& run : runs)
    if (run.status == "done" && !run.best.empty()) run_.known_best = run.best;
  if (runs.empty()) return ok();
  const archive::Run& last = runs.back();
  const bool is_alike = last.seed == options_->seed && last.environment == stamp;
  if (last.status != "done" && is_alike) run_.known_best = last.known_best;
  const auto is_answer = [&](const archive::Run& run) {
    return run.status == "done" && run.seed == options_->seed && run.environment == stamp &&
           run.budget_seconds >= options_->budget_seconds;
  };
  const bool asks_anew = is_limited(*options_) || options_->force_search;
  is_finished_ = !asks_anew && std::ranges::any_of(runs, is_answer);
  return ok();
}

plan::BoundaryChanges BoundaryArchive::start() const {
  return changes_of(run_.known_best).value_or(plan::BoundaryChanges{});
}

Status BoundaryArchive::begin() {
  WARPLOOM_CHECK(add());
  WARPLOOM_TRY(run_id_, archive_.begin_run(run_));
  return ok();
}

// What is known of how it was reached stays.
archive::Candidate& BoundaryArchive::row_of(const plan::BoundaryChanges& changes) {
  const std::string schedule = schedule_of(changes);
  archive::Candidate& row = rows_[schedule];
  row.problem = run_.problem;
  row.schedule = schedule;
  row.fields = {{"family", "boundaries"}, {"changes", plan::to_json(changes)}};
  row.family = "boundaries";
  row.seed = options_->seed;
  row.environment = run_.environment;
  return row;
}

Status BoundaryArchive::record(const plan::BoundaryChanges& changes, double us, bool whole) {
  archive::Candidate& row = row_of(changes);
  row.stage = whole ? archive::Stage::promoted : archive::Stage::screened;
  row.median_us = us;
  if (!whole) row.screened_us = us;
  return archive_.record(row);
}

Status BoundaryArchive::record(const BoundarySearch::Trial& trial,
                               const plan::BoundaryChanges& parent, double us) {
  archive::Candidate& row = row_of(trial.partition.changes);
  row.parents = {schedule_of(parent)};
  row.action = to_json(trial.action);
  row.proposed = {{"strategy", "boundaries"}, {"round", ++run_.candidates}};
  return record(trial.partition.changes, us, false);
}

void BoundaryArchive::finish(const char* status, int tried, const plan::BoundaryChanges& best,
                             double seconds) {
  if (run_id_ <= 0) return;
  run_.status = status;
  run_.candidates = tried;
  run_.best = schedule_of(best);
  run_.seconds = seconds;
  (void)archive_.finish_run(run_id_, run_);  // the outcome is worth more than this row
}
}  // namespace warploom::search
