#include "search/tuning_session.h"
#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <future>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include "base/casts.h"
#include "base/error.h"
#include "codegen/launch_list.h"
#include "kernels/config/kernel_config.h"
#include "plan/limits.h"
#include "search/budget.h"
#include "search/candidate.h"
#include "search/compile_ahead.h"
#include "search/judging.h"
#include "search/options.h"
#include "search/outcome.h"
#include "search/search_strategy.h"
#include "search/task.h"
#include "search/task_archive.h"
#include "verify/evaluator.h"
#include "verify/setup.h"

namespace warploom::search {
namespace {
using plan::Limits;
using std::chrono::milliseconds;
using verify::Evaluator;

constexpr size_t kFinalists = 4;  // measured again with more repeats, beside the reference
constexpr size_t kKept = 100;     // of the right ones, at least the fastest so many

int threads_for(const Options& options) {
  const int cores = as_int(std::max(1u, std::thread::hardware_concurrency()));
  return options.jobs > 0 ? options.jobs : cores;
}

void sort_by_time(std::vector<Candidate>& candidates) {
  std::ranges::stable_sort(candidates, {},
                           [](const Candidate& one) { return one.verdict.median_us; });
}

class TuningSession {
 public:
  TuningSession(const Task& task, const Options& options)
      : task_(task),
        options_(options),
        budget_(options.budget_seconds, task.recorded != nullptr),
        archive_(task, options),
        judging_(task, archive_) {}

  Result<Outcome> run() {
    WARPLOOM_CHECK(archive_.open());
    WARPLOOM_TRY(std::optional<Candidate> known, archive_.lookup_result());
    if (known) {
      candidates_.push_back(*std::move(known));
      from_archive_ = true;
      return conclude();
    }
    WARPLOOM_CHECK(prepare());
    const Status done = search();
    const bool failed = !done && done.error().code != ErrorCode::kInterrupted;
    return failed ? failure(done.error()) : conclude();
  }

 private:
  Status prepare();
  Status resume();
  Status search();
  Status screen_all();
  void put_ahead(CompileAhead& compile);
  bool is_over() const;
  Status screen(Compiled& compiled);
  Result<Candidate> judged(Compiled& compiled);
  void accept(Candidate candidate);
  Status final_rounds();
  Status measure_finalists();
  Status promote_best();
  Result<Outcome> failure(Error why);
  Result<Outcome> conclude();
  const Candidate* winner() const;

  Result<LaunchList> built(const Candidate& candidate) const {
    const bool is_built = !candidate.list.kernels.empty();
    return is_built ? candidate.list : task_.space.build(candidate.config);
  }

  verify::Request quick() const {
    const double reference_us = archive_.run().reference_us.value_or(0);
    return quick_request(options_.budget_seconds, std::max(best_us_, reference_us));
  }

  int most_candidates() const {
    return options_.max_candidates > 0 ? options_.max_candidates : std::numeric_limits<int>::max();
  }

  void report() const;

  // What the search is busy with from now on; "" while it tries candidates.
  void enter(const char* phase) {
    phase_ = phase;
    report();
  }

  const Task& task_;
  const Options& options_;
  Budget budget_;
  TaskArchive archive_;
  Judging judging_;
  std::optional<Evaluator> evaluator_;
  std::optional<SearchStrategy> strategy_;
  std::string phase_;
  std::vector<Candidate> candidates_;  // the fastest accepted ones
  // By their configs' texts: what the search recorded before it was stopped.
  std::map<std::string, Candidate> answered_;
  bool from_archive_ = false;
  bool exhausted_ = false;  // the strategy has no more to propose
  int put_ = 0;             // configs that were proposed
  double best_us_ = 0;
};

Status TuningSession::prepare() {
  enter("working out in FP64 what is right, and timing the reference");
  const double before = budget_.spent();
  // Configs are ranked while the evaluator starts: it belongs to this thread, with which it would
  // end.
  auto ranked = std::async(std::launch::async, [&] {
    Limits limits =
        Limits::of_budget(options_.budget_seconds, budget_.start(), options_.interrupted);
    if (task_.recorded) limits.until.reset();
    strategy_.emplace(task_.space, options_.strategy, options_.seed, limits);
  });
  auto started = Evaluator::start(task_.setup, {.interrupted = options_.interrupted});
  budget_.evaluator_took(budget_.spent() - before);
  ranked.get();
  WARPLOOM_TRY(evaluator_, std::move(started));
  WARPLOOM_CHECK(archive_.begin(evaluator_->ready()));
  if (options_.resume) WARPLOOM_CHECK(resume());
  return archive_.start();
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
    const auto config = one.candidate.config;
    if (one.candidate.judged_here) {
      answered_.emplace(config.text(), std::move(one.candidate));
      continue;
    }
    if (one.same_program) strategy_->skip(config);
    if (one.candidate.verdict.accepted) {
      strategy_->learn(config, one.candidate.verdict.median_us);
      candidates_.push_back(std::move(one.candidate));
    }
    if (one.best) strategy_->suggest(config);
  }
  return ok();
}

Status TuningSession::search() {
  WARPLOOM_CHECK(screen_all());
  return final_rounds();
}

Status TuningSession::screen_all() {
  const auto half = static_cast<long long>(options_.budget_seconds * 500);
  const auto limit = std::clamp(milliseconds(half), milliseconds(10'000), milliseconds(60'000));
  const milliseconds patience(task_.recorded ? 3'600'000 : 3'000);
  enter("compiling the first candidates");
  CompileAhead compile(task_.space.build, threads_for(options_), limit);
  while (!options_.is_interrupted() && archive_.run().candidates < most_candidates()) {
    put_ahead(compile);
    if (compile.pending() == 0 || is_over()) break;
    auto compiled = compile.take(milliseconds(100), patience);
    if (!compiled) continue;
    WARPLOOM_CHECK(screen(*compiled));
    // New results may open new neighbours.
    exhausted_ = exhausted_ && candidates_.empty();
  }
  if (!options_.is_interrupted()) return ok();
  return fail({ErrorCode::kInterrupted, "interrupted", "", "", "", "run again to go on"});
}

void TuningSession::put_ahead(CompileAhead& compile) {
  const auto ahead = as_size(threads_for(options_)) + 2;
  while (!exhausted_ && compile.pending() < ahead && put_ < most_candidates()) {
    const auto config = strategy_->next();
    exhausted_ = !config;
    if (exhausted_) return;
    ++put_;
    compile.put(*config, !answered_.contains(config->text()));
  }
}

// Where nothing is right yet the budget holds only after the search's patience: a small one may go
// before anything is judged. The first candidate's compiler has a clock of its own.
bool TuningSession::is_over() const {
  if (budget_.left() >= budget_.reserve() + budget_.judgement()) return false;
  const bool patient = budget_.left() > -options_.patience_seconds;
  return best_us_ > 0 || (!patient && archive_.run().candidates > 0);
}

Status TuningSession::screen(Compiled& compiled) {
  WARPLOOM_TRY(Candidate candidate, judged(compiled));
  if (candidate.verdict.accepted)
    accept(std::move(candidate));
  else
    strategy_->refuse(candidate.config);
  enter("");
  return ok();
}

// From what was recorded before the search was stopped, or by the evaluator.
Result<Candidate> TuningSession::judged(Compiled& compiled) {
  const std::string text = compiled.config.text();
  if (auto known = answered_.extract(text)) return std::move(known.mapped());
  Candidate candidate;
  candidate.config = std::move(compiled.config);
  candidate.parents = strategy_->parents_of(text);
  candidate.compiler = std::move(compiled.compiler);
  const double before = budget_.spent();
  const bool is_built = compiled.list.has_value();
  WARPLOOM_CHECK(judging_.judge(candidate, std::move(compiled.list), *evaluator_, quick()));
  ++archive_.run().candidates;
  if (is_built) budget_.judgement_took(budget_.spent() - before);
  return candidate;
}

void TuningSession::accept(Candidate candidate) {
  const double us = candidate.verdict.median_us;
  strategy_->learn(candidate.config, us);
  if (best_us_ == 0 || us < best_us_) {
    best_us_ = us;
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

// The fastest few, measured again beside the reference; then the best of them judged whole in a
// fresh process.
Status TuningSession::final_rounds() {
  for (auto& [text, candidate] : answered_)  // that other flags than before did not lead to
    if (candidate.verdict.accepted) candidates_.push_back(std::move(candidate));
  enter("measuring the best few again");
  sort_by_time(candidates_);
  WARPLOOM_CHECK(measure_finalists());
  if (options_.is_interrupted()) return ok();
  // Refused ones go; those measured again come first, since a quick figure does not compare with
  // theirs.
  std::erase_if(candidates_, [](const Candidate& one) { return !one.verdict.accepted; });
  std::ranges::stable_sort(candidates_, {}, [](const Candidate& one) {
    return std::pair(!one.finalist, one.verdict.median_us);
  });
  return candidates_.empty() || options_.is_interrupted() ? ok() : promote_best();
}

Status TuningSession::measure_finalists() {
  const size_t finalists = std::min(candidates_.size(), kFinalists);
  if (finalists < 2) return ok();
  for (size_t i = 0; i < finalists; ++i) {
    if (budget_.left() <= budget_.last_round() + budget_.judgement()) return ok();
    if (options_.is_interrupted()) return ok();
    auto request = quick();
    request.beside_reference = true;
    request.min_samples = 5;
    request.max_samples = 100;
    request.timing_ms = std::clamp(20 * options_.budget_seconds, 100.0, 500.0);
    request.reference_known_us = archive_.reference_known_us();
    Candidate& candidate = candidates_[i];
    WARPLOOM_CHECK(judging_.judge(candidate, built(candidate), *evaluator_, request));
    candidate.finalist = true;
    archive_.note_reference(candidate.verdict.reference_us);
  }
  return ok();
}

Status TuningSession::promote_best() {
  evaluator_.reset();  // its memory is wanted
  enter("judging the best whole, in a fresh process");
  auto fresh = task_.setup;
  fresh.seed = options_.seed ^ kFreshSeed;
  fresh.time_reference = false;
  if (fresh.reference) fresh.reference->chosen = archive_.ready().reference_choice;
  WARPLOOM_TRY(Evaluator judge, Evaluator::start(fresh, {.interrupted = options_.interrupted}));
  for (Candidate& candidate : candidates_) {
    if (options_.is_interrupted()) return ok();
    const double limit_ms = std::max(10'000.0, quick().candidate_limit_ms);
    auto request = whole_request({}, budget_.left(), limit_ms);
    request.reference_known_us = archive_.reference_known_us();
    WARPLOOM_CHECK(judging_.promote(candidate, built(candidate), judge, request));
    if (!candidate.promoted) continue;
    best_us_ = candidate.verdict.median_us;
    auto& run = archive_.run();
    run.best = candidate.config.text();
    // The pair that is told is of one run.
    const double reference_us = candidate.verdict.reference_us;
    run.reference_us = reference_us > 0 ? std::optional(reference_us) : std::nullopt;
    report();
    return ok();
  }
  return ok();
}

// The promoted candidate, or after an interrupt the fastest that this search judged.
const Candidate* TuningSession::winner() const {
  const auto key = [](const Candidate& one) {
    return std::pair(!one.promoted, one.verdict.median_us);
  };
  const Candidate* best = nullptr;
  for (const Candidate& one : candidates_) {
    const bool counts = one.verdict.accepted && one.judged_here;
    if (!counts || (!one.promoted && !options_.is_interrupted())) continue;
    if (!best || key(one) < key(*best)) best = &one;
  }
  return best;
}

Result<Outcome> TuningSession::failure(Error why) {
  archive_.finish("failed", budget_.spent());
  if (best_us_ > 0)
    why.found += fmt::format("; the best so far: {}, {:.1f} us", archive_.run().best, best_us_);
  return fail(why);
}

Result<Outcome> TuningSession::conclude() {
  const Candidate* best = winner();
  const bool interrupted = options_.is_interrupted();
  const char* status = best ? "done" : "failed";
  archive_.finish(interrupted ? "interrupted" : status, budget_.spent());
  const std::string& name = task_.setup.graph.name;
  if (!best && interrupted)
    return fail({ErrorCode::kInterrupted, "interrupted before a correct candidate was found", name,
                 "", judging_.summary(), "run again to go on where it stopped"});
  if (!best) {
    Error error{ErrorCode::kNoCorrectCandidate, "the search ended without a correct candidate"};
    error.place = name;
    error.expected = "a candidate that is right";
    error.found = judging_.summary();
    error.remedy = "give it more time with --budget";
    return fail(error);
  }
  Outcome out;
  out.problem = name;
  out.target = task_.space.capabilities.arch;
  out.device = archive_.ready().device;
  out.track = options_.track;
  out.reference = archive_.ready().reference;
  out.verdict = best->verdict;
  out.candidates = archive_.run().candidates;
  out.refused = judging_.refused();
  out.seed = options_.seed;
  out.interrupted = interrupted;
  out.recalled = from_archive_;
  out.schedule = best->config;
  out.key = archive_.run().problem;
  out.proven = best->promoted;
  WARPLOOM_TRY(out.list, built(*best));
  return out;
}

void TuningSession::report() const {
  if (!options_.on_progress) return;
  const auto& run = archive_.run();
  Progress progress;
  progress.seconds = budget_.spent();
  progress.budget_seconds = options_.budget_seconds;
  progress.candidates = run.candidates;
  progress.refused = judging_.refused();
  progress.best_us = best_us_;
  progress.reference_us = run.reference_us.value_or(0);
  progress.best = run.best;
  progress.phase = phase_;
  options_.on_progress(progress);
}
}  // namespace

Result<Outcome> tune(const Task& task, const Options& options) {
  return TuningSession(task, options).run();
}
}  // namespace warploom::search
