// The end of a session: finalists, promotion, and what becomes the outcome.
#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>
#include "archive/archive.h"
#include "base/casts.h"
#include "base/error.h"
#include "codegen/launch_list.h"
#include "runtime/compile.h"
#include "search/budget.h"
#include "search/candidate.h"
#include "search/outcome.h"
#include "search/requests.h"
#include "search/strategy/ranked.h"
#include "search/tuning_session.h"
#include "verify/evaluator.h"
#include "verify/setup.h"

namespace warploom::search {
namespace {
constexpr size_t kFinalists = 4;  // measured again with more repeats, beside the reference
// Times another candidate's: what counts as clearly less of an error.
constexpr double kClearlyLess = 0.7;
}  // namespace

Status TuningSession::finish(const Slice& slice) {
  constexpr size_t kComparing = 2;  // one alone is measured beside the reference when it is proven
  WARPLOOM_CHECK(measure_best(slice.soft, kComparing));
  return prove_best(slice);
}

Status TuningSession::measure_best(const Budget& until, size_t least) {
  for (auto& [text, candidate] : answered_)  // that other flags than before did not lead to
    if (candidate.verdict.accepted) candidates_.push_back(std::move(candidate));
  answered_.clear();
  end_writer();
  enter("measuring the best few again");
  sort_by_time(candidates_);
  WARPLOOM_CHECK(unless_late(measure_finalists(until, least)));
  // Refused ones go; those measured again come first, since a quick figure does not compare with
  // theirs.
  std::erase_if(candidates_, [](const Candidate& one) { return !one.verdict.accepted; });
  std::ranges::stable_sort(candidates_, {}, [this](const Candidate& one) {
    return std::pair(!one.finalist, comparable_us(one, archive_.reference_known_us()));
  });
  return ok();
}

double TuningSession::finalists_seconds() const {
  return as_double(std::min(candidates_.size(), kFinalists)) * costs().judgement();
}

Status TuningSession::prove_best(const Slice& slice) {
  measurer_.rest();
  if (candidates_.empty() || options_.is_interrupted()) return ok();
  return unless_late(promote_best(slice));
}

Status TuningSession::measure_finalists(const Budget& until, size_t least) {
  const size_t finalists = std::min(candidates_.size(), kFinalists);
  const bool is_ready = is_awake() || task_.recorded;
  if (finalists < least || !is_ready) return ok();
  for (size_t i = 0; i < finalists; ++i) {
    const double kept = least > 1 ? costs().last_round() : 0;
    if (until.left() <= kept + costs().judgement()) return ok();
    if (options_.is_interrupted()) return ok();
    verify::Request request = finalist_request(options_.budget_seconds, known_us());
    request.reference_known_us = archive_.reference_known_us();
    request.until = until.less(kept).until();
    Candidate& candidate = candidates_[i];
    WARPLOOM_CHECK(measurer_.measure(candidate, built(candidate), request));
    candidate.finalist = true;
    WARPLOOM_CHECK(archive_.record(candidate));
    archive_.note_reference(candidate.verdict.reference_us);
  }
  return ok();
}

Status TuningSession::promote_best(const Slice& slice) {
  constexpr double kReadyShare = 0.3;  // of the time that is left
  enter("judging the best whole, in a fresh process");
  if (!task_.recorded) {
    const double seconds = kReadyShare * std::clamp(slice.soft.left(), 0.1, 100.0);
    WARPLOOM_CHECK(measurer_.start_fresh(fresh_setup(seconds), slice.hard));
    archive_.note_ready(measurer_.ready());
  }
  for (Candidate& candidate : candidates_) {
    if (options_.is_interrupted()) return ok();
    WARPLOOM_CHECK(promote(candidate, slice));
    if (candidate.promoted) break;
  }
  measurer_.rest();
  return ok();
}

Status TuningSession::promote(Candidate& candidate, const Slice& slice) {
  Result<LaunchList> list = built(candidate);
  // What an earlier run compiled is cached: by whom, lookup_result() will ask.
  if (list && candidate.compiler.empty() && !task_.recorded)
    if (const auto binary = runtime::compile(*list, {.foreign = list->foreign}))
      candidate.compiler = binary->compiler;
  const double limit_ms =
      std::max(10'000.0, quick_request(options_.budget_seconds, known_us()).candidate_limit_ms);
  verify::Request request = whole_request(slice, limit_ms);
  request.reference_known_us = archive_.reference_known_us();
  Candidate judged = candidate;  // as it was, where the time is up
  WARPLOOM_CHECK(measurer_.measure(judged, std::move(list), request));
  candidate = std::move(judged);
  WARPLOOM_CHECK(archive_.record(candidate));
  if (!candidate.promoted) return ok();
  best_us_ = candidate.verdict.median_us;
  archive::Run& run = archive_.run();
  run.best = candidate.config.text();
  // The pair that is told is of one run.
  const double reference_us = candidate.verdict.reference_us;
  run.reference_us = reference_us > 0 ? std::optional(reference_us) : std::nullopt;
  report();
  return ok();
}

// What was chosen for a plan's sake; else the promoted candidate, or where none was judged whole
// the fastest that this search judged.
const Candidate* TuningSession::winner() const {
  const auto key = [this](const Candidate& one) {
    return std::tuple(!one.promoted, !one.finalist,
                      comparable_us(one, archive_.reference_known_us()));
  };
  const Candidate* best = nullptr;
  for (const Candidate& one : candidates_) {
    if (chosen_ && one.config == *chosen_) return &one;
    if (!one.verdict.accepted || !one.judged_here) continue;
    if (!best || key(one) < key(*best)) best = &one;
  }
  return chosen_ ? nullptr : best;
}

double TuningSession::strain() const {
  const Candidate* const best = winner();
  return best ? best->strain : 0;
}

double TuningSession::compile_seconds() const {
  const Candidate* const best = winner();
  const bool is_known = best && best->compile_seconds > 0;
  return is_known ? best->compile_seconds : costs().compile();
}

bool TuningSession::take_more_exact() {
  const Candidate* const now = winner();
  if (!now) return false;
  const Candidate* found = nullptr;
  for (const Candidate& one : candidates_) {
    const bool counts = one.verdict.accepted && one.judged_here && one.strain > 0;
    if (!counts || one.strain > kClearlyLess * now->strain) continue;
    if (!found || one.verdict.median_us < found->verdict.median_us) found = &one;
  }
  if (!found) return take_fallback();
  chosen_ = found->config;
  return true;
}

bool TuningSession::take_fallback() {
  if (!fallback_) fallback_ = fallback_of(task_.space);
  const Candidate* const now = winner();
  if (!fallback_) return false;
  const bool is_it =
      chosen_ ? *chosen_ == fallback_->config : now && now->config == fallback_->config;
  if (is_it) return false;
  chosen_ = fallback_->config;
  return true;
}

// One that was not judged alone.
Result<Candidate> TuningSession::unjudged() const {
  Candidate out;
  out.config = *chosen_;
  if (fallback_ && out.config == fallback_->config)
    out.list = fallback_->list;
  else
    WARPLOOM_TRY(out.list, task_.space.build(out.config));
  return out;
}

Error TuningSession::failure(Error why) {
  archive_.finish("failed", budget_.spent());
  if (best_us_ > 0)
    why.found += fmt::format("; the best so far: {}, {:.1f} us", archive_.run().best, best_us_);
  return why;
}

Error TuningSession::nothing_right() const {
  const std::string& name = task_.setup.graph.name;
  if (options_.is_interrupted())
    return {ErrorCode::kInterrupted,
            "interrupted before a correct candidate was found",
            name,
            "",
            measurer_.refusals(),
            "run again to go on where it stopped"};
  Error error{ErrorCode::kNoCorrectCandidate, "the search ended without a correct candidate"};
  error.place = name;
  error.expected = "a candidate that is right";
  error.found = measurer_.refusals();
  error.remedy = "all that there is was tried: take track tolerance, or report it with the model";
  if (has_more()) error.remedy = "give it more time with --budget";
  if (!late_ && !budget_.is_over()) return error;
  error.message = "the budget ended before a candidate was judged right";
  error.expected = "a larger budget";
  error.found += fmt::format("; {:.1f} s were spent, {}", budget_.spent(),
                             phase_.empty() ? "trying candidates" : "at last " + phase_);
  error.remedy = fmt::format("give it at least {:.0f} s: --budget {:.0f}s", needed_seconds(),
                             needed_seconds());
  return error;
}

// What was measured, and of what had not come to its end as long again.
double TuningSession::needed_seconds() const {
  const double phases = costs().first_set_up() + costs().compile() + costs().last_round();
  return std::ceil(std::max(1.5 * budget_.seconds(), budget_.spent() + 2 * phases));
}

Result<Outcome> TuningSession::conclude() {
  Result<Candidate> other = Candidate{};
  const Candidate* best = winner();
  if (!best && chosen_) {
    other = unjudged();
    if (other) best = &*other;
  }
  const bool interrupted = options_.is_interrupted();
  const char* status = best ? "done" : "failed";
  if (!from_archive_) archive_.finish(interrupted ? "interrupted" : status, budget_.spent());
  if (!best) return fail(other ? nothing_right() : other.error());
  Outcome out;
  out.problem = task_.setup.graph.name;
  out.target = task_.space.capabilities.arch;
  out.device = archive_.ready().device;
  out.track = options_.track;
  out.reference = archive_.ready().reference;
  out.verdict = best->verdict;
  out.candidates = archive_.run().candidates;
  out.refused = measurer_.refused();
  out.seed = options_.seed;
  out.interrupted = interrupted;
  out.recalled = from_archive_;
  out.schedule = best->config;
  out.key = archive_.run().problem;
  out.proven = best->promoted;
  out.set_up = set_up_;
  out.coder = writer_summary();
  out.device_notes = measurer_.notes();
  WARPLOOM_TRY(out.list, built(*best));
  return out;
}
}  // namespace warploom::search
