#include "search/tuning_session.h"
#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <future>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <ranges>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/error.h"
#include "base/rows.h"
#include "codegen/launch_list.h"
#include "graph/graph.h"
#include "kernels/config/kernel_config.h"
#include "plan/limits.h"
#include "runtime/compile.h"
#include "search/budget.h"
#include "search/candidate.h"
#include "search/coder/coder.h"
#include "search/coder/written.h"
#include "search/compile_pool.h"
#include "search/measurer.h"
#include "search/options.h"
#include "search/outcome.h"
#include "search/policy/policy.h"
#include "search/requests.h"
#include "search/strategy/ranked.h"
#include "search/strategy/strategy.h"
#include "search/task.h"
#include "search/task_archive.h"
#include "verify/evaluator.h"
#include "verify/setup.h"

namespace warploom::search {
namespace {
using plan::Limits;
using std::chrono::milliseconds;
using verify::Evaluator;

constexpr size_t kKept = 100;        // of the right ones, at least the fastest so many
constexpr double kSetUpShare = 0.2;  // of the budget, at most
constexpr double kNearFloor = 1.05;  // times the physical floor: nothing is left to gain
constexpr int kDry = 96;             // candidates without a gain, or as many as were tried before

int threads_for(const Options& options) {
  const int cores = as_int(std::max(1u, std::thread::hardware_concurrency()));
  return options.jobs > 0 ? options.jobs : cores;
}

// Half of the budget, and ten seconds at least: what ends it sooner is the deadline.
milliseconds compile_limit(const Options& options) {
  const double seconds = std::clamp(0.5 * options.budget_seconds, 10.0, 60.0);
  return milliseconds(static_cast<int>(1e3 * seconds));
}

// The refusals that say that a kernel computes something else.
bool is_wrong(ErrorCode code) {
  constexpr std::array kWrong = {ErrorCode::kCandidateWrong,      ErrorCode::kCandidateNonFinite,
                                 ErrorCode::kCandidateUnwritten,  ErrorCode::kCandidateUnstable,
                                 ErrorCode::kCandidateWroteInput, ErrorCode::kCandidateCrashed};
  return contains(kWrong, code);
}

std::string first_device(const Options& options) {
  return options.devices.empty() ? "" : options.devices[0];
}

FurtherDevices further_devices(const Options& options) {
  FurtherDevices out;
  if (options.devices.size() > 1)
    out.names.assign(options.devices.begin() + 1, options.devices.end());
  return out;
}

bool is_broad(Strategy strategy) {
  return strategy == Strategy::automatic || strategy == Strategy::beam;
}
}  // namespace

CompilePool::Turns turns_for(const Options& options) {
  return std::make_shared<runtime::Turns>(threads_for(options));
}

TuningSession::TuningSession(const Task& task, Options options, const Budget& budget,
                             CompilePool::Turns turns)
    : task_(task),
      options_(std::move(options)),
      budget_(budget),
      archive_(task, options_),
      measurer_(task, budget, std::move(turns), compile_limit(options_), options_.interrupted,
                options_.evaluators, further_devices(options_), first_device(options_)) {}

Status TuningSession::open() {
  WARPLOOM_CHECK(archive_.open());
  WARPLOOM_TRY(std::optional<Candidate> known, archive_.lookup_result());
  from_archive_ = known.has_value();
  if (known) best_us_ = known->verdict.median_us;
  if (known) candidates_.push_back(*std::move(known));
  return ok();
}

// The fallback's compiler runs while an evaluator starts and configs are ranked.
Status TuningSession::begin() {
  if (std::exchange(begun_, true)) return ok();
  WARPLOOM_TRY(policy_, make_policy(options_.policy, options_.weights));
  WARPLOOM_TRY(coder_, make_coder(options_.coder));
  if (options_.resume) WARPLOOM_CHECK(resume());
  if (is_broad(options_.strategy)) fallback_ = fallback_of(task_.space);
  if (!fallback_) return ok();
  const std::string text = fallback_->config.text();
  const auto knows = [&](const Remembered& one) { return one.candidate.config.text() == text; };
  if (std::ranges::any_of(remembered_, knows) || answered_.contains(text)) return ok();
  is_fallback_put_ = true;
  ++put_;
  measurer_.submit({.config = fallback_->config});
  return ok();
}

// What earlier runs learned: times guide the proposals, the best is judged again first, and the
// rest is not tried again unless another build of the program judged it.
//
// A search that did not come to its end is done again instead, from what was known when it began:
// the same proposals come in the same order, and what it recorded stands for judging them. So it
// goes on exactly where it stopped, wherever that was.
Status TuningSession::resume() {
  WARPLOOM_TRY(std::vector<Remembered> all, archive_.resume());
  for (Remembered& one : all) {
    const std::string text = one.candidate.config.text();
    one.candidate.answered = one.candidate.judged_here;
    if (one.candidate.answered)
      answered_.emplace(text, std::move(one.candidate));
    else
      remembered_.push_back(std::move(one));
  }
  return ok();
}

void TuningSession::wake() {
  if (!task_.recorded && !from_archive_) measurer_.begin(first_setup());
}

verify::Setup TuningSession::first_setup() const {
  verify::Setup setup = task_.setup;
  if (const double seconds = options_.budget_seconds; std::isfinite(seconds))
    setup.ready_ms = 1e3 * kSetUpShare * seconds;
  return setup;
}

// The first time configs are ranked meanwhile: the evaluator belongs to this thread, with which it
// would end.
Status TuningSession::prepare(const Budget& hard) {
  enter("working out in FP64 what is right, and timing the reference");
  const bool is_first = !strategy_;
  std::future<void> ranked;
  if (is_first) ranked = std::async(std::launch::async, [&] { strategy_ = made_strategy(); });
  verify::Setup setup = first_setup();
  if (!is_first && setup.reference) {
    setup.reference->chosen = archive_.ready().reference_choice;
    setup.time_reference = false;
  }
  const Status started = task_.recorded ? ok() : measurer_.start(setup, hard);
  if (is_first) ranked.get();
  WARPLOOM_CHECK(started);
  if (!is_first) return ok();
  WARPLOOM_CHECK(archive_.begin(task_.recorded ? archive_.ready() : measurer_.ready()));
  if (!task_.recorded) set_up_ = measurer_.ready().parts;
  stand_by();
  WARPLOOM_CHECK(start_writer());
  keep_near();
  std::vector<Candidate> banked;
  for (Remembered& one : remembered_) {
    const kernels::KernelConfig config = one.candidate.config;
    if (is_written(config)) {
      if (one.candidate.verdict.accepted) banked.push_back(std::move(one.candidate));
      continue;
    }
    if (one.same_program) strategy_->skip(config);
    if (one.candidate.verdict.accepted) {
      strategy_->tell({config, true, one.candidate.verdict.median_us});
      candidates_.push_back(std::move(one.candidate));
    }
    if (one.best) strategy_->suggest(config);
  }
  remembered_.clear();
  submit_banked(std::move(banked));
  enter("compiling the first candidates");
  return archive_.start();
}

// As archive::Candidate has it.
nlohmann::json TuningSession::proposed_by(const Origins& origins) const {
  nlohmann::json out = {{"strategy", kStrategyNames[as_size(options_.strategy)]}};
  out["round"] = origins.round;
  if (origins.chance <= 0) return out;
  out["policy"] = kPolicyNames[as_size(options_.policy)];
  out["chance"] = origins.chance;
  return out;
}

// But for what was judged here before.
void TuningSession::keep_near() {
  near_ = archive_.near();
  std::erase_if(near_, [&](const kernels::KernelConfig& config) {
    return std::ranges::any_of(remembered_, [&](const Remembered& one) {
      return one.same_program && one.candidate.config == config;
    });
  });
}

// The nearest first. A family's own guess is better than what is carried over, where it has one
// (bench/results/search_near.json): they come behind one of each.
void TuningSession::suggest_near() {
  if (near_.empty() || as_size(put_) <= task_.space.families.size()) return;
  for (const kernels::KernelConfig& config : std::views::reverse(near_))
    strategy_->suggest(config);
  near_.clear();
}

StrategyPtr TuningSession::made_strategy() const {
  const plan::Limits limits{options_.interrupted, budget_.part(0.3 * budget_.left()).until()};
  return make_strategy(options_.strategy, {.space = &task_.space,
                                           .seed = options_.seed,
                                           .limits = limits,
                                           .policy = policy_,
                                           .coder = coder_});
}

// Where there is memory for both, and a GPU, so that it does not take the candidates' cores.
void TuningSession::stand_by() {
  constexpr int64_t kMostBytes = int64_t{1} << 30;
  if (task_.recorded || !options_.stands_by || task_.setup.engine != Engine::cuda) return;
  int64_t bytes = 0;
  for (const graph::Tensor& tensor : task_.setup.graph.tensors)
    bytes += graph::byte_count(tensor);
  if (bytes > kMostBytes) return;
  measurer_.stand_by(fresh_setup(kSetUpShare * std::min(options_.budget_seconds, 100.0)));
}

verify::Setup TuningSession::fresh_setup(double ready_seconds) const {
  verify::Setup fresh = task_.setup;
  fresh.seed = options_.seed ^ kFreshSeed;
  fresh.time_reference = false;
  fresh.ready_ms = 1e3 * ready_seconds;
  if (fresh.reference) fresh.reference->chosen = archive_.ready().reference_choice;
  return fresh;
}

Status TuningSession::search(const Slice& slice) {
  const bool is_ready = measurer_.is_started() || (task_.recorded && strategy_);
  Status done = is_ready ? ok() : prepare(slice.hard);
  while (done && !is_over(slice)) {
    put_ahead();
    WARPLOOM_CHECK(ask_writer());
    const bool is_writing = writer_ && writer_->has_more();
    if (measurer_.pending() == 0 && !is_writing) break;
    verify::Request request = quick_request(options_.budget_seconds, known_us());
    request.best_us = best_us_;
    request.until = slice.hard.until();
    Result<std::optional<Candidate>> judged = measurer_.take(milliseconds(100), request);
    if (!judged) done = fail(judged.error());
    if (judged && *judged) done = take_verdict(**std::move(judged));
  }
  if (!done) return unless_late(done);
  late_ = late_ || slice.hard.is_over();
  if (!options_.is_interrupted()) return ok();
  return fail({ErrorCode::kInterrupted, "interrupted", "", "", "", "run again to go on"});
}

// What ended since the time was up is no error: the process that it ended in goes.
Status TuningSession::unless_late(const Status& done) {
  if (done || done.error().code != ErrorCode::kInterrupted || options_.is_interrupted())
    return done;
  late_ = true;
  measurer_.rest();
  return ok();
}

void TuningSession::put_ahead() {
  // Two of each further device: one at work, one that waits.
  const size_t further = options_.devices.empty() ? 0 : options_.devices.size() - 1;
  const auto ahead = as_size(threads_for(options_)) + 2 + 2 * further;
  while (!exhausted_ && measurer_.pending() < ahead && put_ < most_candidates()) {
    suggest_near();
    std::optional<Proposal> next = strategy_->ask();
    exhausted_ = !next;
    if (exhausted_) return;
    const bool is_fallback = is_fallback_put_ && next->config == fallback_->config;
    if (is_fallback) continue;  // its compiler has begun
    ++put_;
    std::erase(near_, next->config);
    if (writer_ && next->action) writer_->offer(next->action->sentence);
    const std::string text = next->config.text();
    if (auto known = answered_.extract(text)) {
      measurer_.submit(std::move(known.mapped()));
      continue;
    }
    measurer_.submit({.config = std::move(next->config),
                      .parents = std::move(next->parents),
                      .action = std::move(next->action),
                      .proposed = proposed_by(next->origins)});
  }
}

bool TuningSession::is_over(const Slice& slice) const {
  if (options_.is_interrupted() || archive_.run().candidates >= most_candidates()) return true;
  if (slice.hard.is_over() || slice.soft.is_over()) return true;
  if (best_us_ <= 0) return false;
  return slice.until_right || slice.soft.left() < costs().judgement() || !has_more();
}

bool TuningSession::has_more() const {
  if (from_archive_ || archive_.run().candidates >= most_candidates()) return false;
  const bool is_writing = writer_ && writer_->has_more();
  if (exhausted_ && measurer_.pending() == 0 && !is_writing) return false;
  const double floor_us = task_.setup.floor_us;
  if (floor_us > 0 && best_us_ > 0 && best_us_ < kNearFloor * floor_us) return false;
  if (!is_right()) return true;
  const int tried = candidates();
  return is_writing || dry_ < std::max(kDry, tried - dry_);
}

// Counted and recorded unless it was so before the search was stopped.
Status TuningSession::take_verdict(Candidate candidate) {
  if (!candidate.answered) {
    WARPLOOM_CHECK(archive_.record(candidate));
    ++archive_.run().candidates;
  }
  ++dry_;
  if (writer_) writer_->tell(candidate);
  const bool accepted = candidate.verdict.accepted;
  const ErrorCode refusal = accepted ? ErrorCode{} : candidate.verdict.error_found.code;
  if (!is_written(candidate.config))
    strategy_->tell({.config = candidate.config,
                     .accepted = accepted,
                     .us = accepted ? candidate.verdict.median_us : 0,
                     .is_wrong = !accepted && is_wrong(refusal),
                     .refusal = refusal});
  exhausted_ = false;  // new results may open new proposals
  if (accepted) accept(std::move(candidate));
  enter("");
  return ok();
}

void TuningSession::accept(Candidate candidate) {
  const double us = candidate.verdict.median_us;
  if (best_us_ == 0 || us < best_us_) {
    best_us_ = us;
    dry_ = 0;
    archive_.run().best = candidate.config.text();
  }
  std::erase_if(candidates_, [&](const Candidate& one) { return one.config == candidate.config; });
  // Made again for the few that are asked for again: there may be a hundred thousand.
  candidate.list = {};
  candidate.verdict.evidence = {};
  candidates_.push_back(std::move(candidate));
  if (candidates_.size() <= 2 * kKept) return;
  sort_by_time(candidates_);
  candidates_.erase(candidates_.begin() + kKept, candidates_.end());
}

double TuningSession::known_us() const {
  return std::max(best_us_, archive_.run().reference_us.value_or(0));
}

int TuningSession::most_candidates() const {
  return options_.max_candidates > 0 ? options_.max_candidates : std::numeric_limits<int>::max();
}

void TuningSession::report() const {
  if (!options_.on_progress) return;
  const auto& run = archive_.run();
  Progress progress;
  progress.seconds = budget_.spent();
  progress.budget_seconds = budget_.seconds();
  progress.candidates = run.candidates;
  progress.refused = measurer_.refused();
  progress.best_us = best_us_;
  progress.reference_us = run.reference_us.value_or(0);
  progress.best = run.best;
  progress.phase = phase_;
  options_.on_progress(progress);
}

// Something right first; then as long as it is worth, but for what the last rounds want.
Result<Outcome> tune(const Task& task, const Options& options) {
  const bool is_timed = !task.recorded || options.now;
  const Budget budget = is_timed ? Budget(options.budget_seconds, options.now) : Budget::endless();
  TuningSession session(task, options, budget, turns_for(options));
  WARPLOOM_CHECK(session.open());
  if (session.is_recalled()) return session.conclude();
  Status done = session.begin();
  if (done) done = session.search({.soft = budget, .hard = budget, .until_right = true});
  if (done && session.is_right()) {
    const Budget kept =
        budget.less(std::min(session.costs().finals(), 0.5 * options.budget_seconds));
    done = session.search({.soft = kept, .hard = kept});
  }
  if (done) done = session.finish({.soft = budget, .hard = budget});
  const bool failed = !done && done.error().code != ErrorCode::kInterrupted;
  if (failed) return fail(session.failure(done.error()));
  return session.conclude();
}
}  // namespace warploom::search
