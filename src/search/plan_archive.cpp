#include "search/plan_archive.h"
#include <fmt/format.h>
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
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
#include "graph/rewrite.h"
#include "graph/track.h"
#include "plan/boundary_change.h"
#include "runtime/executor.h"
#include "search/action/action.h"
#include "search/options.h"
#include "search/outcome.h"
#include "search/plan_choice.h"
#include "search/strategy/strategy.h"
#include "search/task_archive.h"
#include "target/capabilities.h"
#include "verify/evaluator.h"

namespace warploom::search {
namespace {
using nlohmann::json;

constexpr std::string_view kPlansOf = "plans of ";

// Another kind of search than one that only its budget ends, whose end says nothing.
bool is_limited(const Options& options) {
  return options.max_candidates > 0 || options.strategy != Strategy::automatic ||
         options.has_model() || options.own_actions;
}

// The last run that came to its end; nothing where none did.
const archive::Run* last_done(const std::vector<archive::Run>& runs) {
  const archive::Run* out = nullptr;
  for (const archive::Run& run : runs)
    if (run.status == "done" && !run.best.empty()) out = &run;
  return out;
}

std::optional<double> known(double us) {
  return us > 0 ? std::optional(us) : std::nullopt;
}

void accept(archive::Candidate& row, bool is_proven, double us) {
  row.stage = is_proven ? archive::Stage::promoted : archive::Stage::screened;
  row.error_code.clear();
  row.median_us = known(us);
  if (!is_proven) row.screened_us = row.median_us;
}
}  // namespace

bool is_of_plans(const archive::Problem& problem) {
  return problem.name.starts_with(kPlansOf) && problem.features.is_null();
}

std::string plans_key(const graph::Graph& given, const Options& options,
                      const target::Capabilities& capabilities, const std::string& device) {
  return hash_hex(fmt::format("plans|{}|{}|{}|{}|{}|{}", graph::to_text(given),
                              name_of(options.track), capabilities.arch, device,
                              capabilities.num_sms, listed(options.constants)));
}

Result<std::optional<KnownPlan>> known_plan(archive::Archive& from, const graph::Graph& given,
                                            Track track, const std::string& target) {
  const std::string text = graph::to_text(given);
  std::optional<KnownPlan> out;
  WARPLOOM_TRY(const auto problems, from.problems());
  for (const archive::Problem& one : problems) {
    const bool is_its = is_of_plans(one) && one.text == text;
    if (!is_its || one.track != name_of(track) || one.target != target) continue;
    WARPLOOM_TRY(const auto runs, from.runs(one.key));
    WARPLOOM_TRY(const auto best, from.best(one.key));
    const archive::Run* const last = last_done(runs);
    if (last == nullptr && !best) continue;
    KnownPlan found{one, last != nullptr ? last->best : best->schedule, {}, last != nullptr};
    WARPLOOM_TRY(found.choice, choice_from_text(found.schedule));
    out = std::move(found);
  }
  return out;
}

Result<std::optional<KnownPlan>> older_partition(archive::Archive& from, const graph::Graph& cut,
                                                 Track track, const std::string& target) {
  const std::string text = graph::to_text(cut);
  WARPLOOM_TRY(const auto problems, from.problems());
  for (const archive::Problem& one : problems) {
    const bool may_be = !is_of_plans(one) && one.features.is_null() && one.text == text;
    if (!may_be || one.track != name_of(track) || one.target != target) continue;
    WARPLOOM_TRY(const auto runs, from.runs(one.key));
    const archive::Run* const last = last_done(runs);
    const auto choice = last != nullptr ? choice_from_text(last->best) : PlanChoice();
    if (last != nullptr && choice) return KnownPlan{one, last->best, *choice, true};
  }
  return std::optional<KnownPlan>();
}

PlanArchive::PlanArchive(archive::Archive archive, const Options& options)
    : archive_(std::move(archive)), options_(&options) {
  run_.seed = options.seed;
  run_.environment = build_stamp();
  run_.budget_seconds = is_limited(options) ? 0 : options.budget_seconds;
  start_ = with({});
}

Result<PlanArchive> PlanArchive::open(const graph::Graph& given, const Options& options,
                                      const target::Capabilities& capabilities) {
  const Engine engine = capabilities.gpu ? Engine::cuda : Engine::cpu;
  WARPLOOM_TRY(const auto device, runtime::Executor::describe(engine));
  std::filesystem::path path(options.archive);
  if (path.empty()) path = cache_folder() / "archive.sqlite";
  WARPLOOM_TRY(auto archive, archive::Archive::open(path));
  PlanArchive out(std::move(archive), options);
  out.problem_.key = plans_key(given, options, capabilities, device.name);
  out.problem_.name = std::string(kPlansOf) + given.name;
  out.problem_.track = name_of(options.track);
  out.problem_.target = capabilities.arch;
  out.problem_.device = device.name;
  out.problem_.text = graph::to_text(given);
  out.run_.problem = out.problem_.key;
  return out;
}

Status PlanArchive::add() {
  return archive_.add_problem(problem_);
}

PlanChoice PlanArchive::with(const plan::BoundaryChanges& boundaries) const {
  PlanChoice out;
  if (options_->choice) out.rewrites = options_->choice->rewrites;
  out.boundaries = boundaries;
  return out;
}

Status PlanArchive::find_start(const graph::Graph& cut) {
  if (!options_->resume) return ok();
  WARPLOOM_TRY(std::vector<archive::Run> runs, archive_.runs(run_.problem));
  // A search of boundaries says where it began; one of several choices does not.
  std::erase_if(runs, [this](const archive::Run& run) {
    const auto began = choice_from_text(run.known_best);
    return !began || began->rewrites != start_.rewrites;
  });
  if (runs.empty()) {
    WARPLOOM_TRY(const auto older,
                 older_partition(archive_, cut, options_->track, problem_.target));
    if (older) start_ = with(older->choice.boundaries);
    return ok();
  }
  const archive::Run* const done = last_done(runs);
  std::string begins = done != nullptr ? done->best : start_.text();
  const archive::Run& last = runs.back();
  const bool is_alike = last.seed == run_.seed && last.environment == run_.environment;
  if (last.status != "done" && is_alike) begins = last.known_best;
  if (const auto choice = choice_from_text(begins)) start_ = with(choice->boundaries);
  const auto is_answer = [&](const archive::Run& run) {
    return run.status == "done" && run.seed == run_.seed && run.environment == run_.environment &&
           run.budget_seconds >= options_->budget_seconds;
  };
  const bool asks_anew = is_limited(*options_) || options_->force_search;
  is_finished_ = !asks_anew && std::ranges::any_of(runs, is_answer);
  return ok();
}

// What is known of it stays.
Result<archive::Candidate> PlanArchive::row_of(const PlanChoice& choice) {
  archive::Candidate row;
  WARPLOOM_TRY(const auto rows, archive_.candidates(run_.problem));
  const auto known = std::ranges::find(rows, choice.text(), &archive::Candidate::schedule);
  if (known != rows.end()) row = *known;
  row.problem = run_.problem;
  row.schedule = choice.text();
  row.family = "plan";
  row.fields = {{"rewrites", json::array()}, {"boundaries", to_json(choice.boundaries)}};
  for (const graph::Rewrite& one : choice.rewrites)
    row.fields["rewrites"].push_back(one.text());
  row.seed = run_.seed;
  row.environment = run_.environment;
  return row;
}

Status PlanArchive::record(const PlanChoice& choice, const std::optional<Action>& action,
                           double predicted_us, const Result<Outcome>& found) {
  if (!found && found.error().code == ErrorCode::kInterrupted) return ok();
  WARPLOOM_CHECK(add());
  WARPLOOM_TRY(archive::Candidate row, row_of(choice));
  if (action) {
    row.parents = {PlanChoice().text()};
    row.action = to_json(*action);
  }
  row.proposed = {{"strategy", "choices"}, {"predicted_us", predicted_us}};
  if (!found) {
    row.stage = archive::Stage::refused;
    row.error_code = code_text(found.error().code);
    return archive_.record(row);
  }
  // The plan that was found may have other boundaries than the choice: then its times are theirs.
  const PlanChoice made{choice.rewrites, found->plan.partition.changes};
  if (made != choice) {
    if (row.median_us) WARPLOOM_CHECK(archive_.record(row));
    WARPLOOM_TRY(row, row_of(made));
  }
  const verify::Verdict& verdict = found->verdict;
  accept(row, found->proven, verdict.median_us);
  row.source_hash = found->plan.hash();
  row.low_us = known(verdict.low_us);
  row.high_us = known(verdict.high_us);
  row.reference_us = known(verdict.reference_us);
  row.speedup = known(verdict.speedup.median);
  row.error = verdict.error;
  return archive_.record(row);
}

// A run of its own: it began with no choice, so that no search of boundaries goes on from it.
Status PlanArchive::conclude(const PlanChoice& best, double seconds) {
  WARPLOOM_CHECK(add());
  archive::Run run = run_;
  run.status = "done";
  run.best = best.text();
  run.seconds = seconds;
  WARPLOOM_TRY(const int64_t id, archive_.begin_run(run));
  return archive_.finish_run(id, run);
}

Status PlanArchive::begin() {
  WARPLOOM_CHECK(add());
  run_.known_best = start_.text();
  WARPLOOM_TRY(run_id_, archive_.begin_run(run_));
  return ok();
}

Status PlanArchive::record(const plan::BoundaryChanges& boundaries, double us, bool whole) {
  WARPLOOM_CHECK(add());
  WARPLOOM_TRY(archive::Candidate row, row_of(with(boundaries)));
  accept(row, whole, us);
  return archive_.record(row);
}

Status PlanArchive::record_trial(const plan::BoundaryChanges& boundaries, const Action& action,
                                 const plan::BoundaryChanges& parent, double us) {
  WARPLOOM_TRY(archive::Candidate row, row_of(with(boundaries)));
  row.parents = {with(parent).text()};
  row.action = to_json(action);
  row.proposed = {{"strategy", "boundaries"}, {"round", ++run_.candidates}};
  accept(row, false, us);
  return archive_.record(row);
}

void PlanArchive::finish(const char* status, int tried, const plan::BoundaryChanges& best,
                         double seconds) {
  if (run_id_ <= 0) return;
  run_.status = status;
  run_.candidates = tried;
  run_.best = with(best).text();
  run_.seconds = seconds;
  (void)archive_.finish_run(run_id_, run_);  // the outcome is worth more than this row
}
}  // namespace warploom::search
