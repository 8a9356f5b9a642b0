#include "search/measurer.h"
#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include "base/error.h"
#include "base/hash.h"
#include "base/rows.h"
#include "codegen/launch_list.h"
#include "search/budget.h"
#include "search/candidate.h"
#include "search/compile_pool.h"
#include "search/task.h"
#include "verify/evaluator.h"
#include "verify/setup.h"

namespace warploom::search {
namespace {
constexpr size_t kMostKept = 4000;  // verdicts, for those that are built to the same
}  // namespace

bool is_fatal(ErrorCode code) {
  constexpr std::array kFatal = {
      ErrorCode::kNoCompiler,     ErrorCode::kNoDriver,      ErrorCode::kNoGpu,
      ErrorCode::kNoNvrtc,        ErrorCode::kGpuTooOld,     ErrorCode::kDiskFull,
      ErrorCode::kFileUnwritable, ErrorCode::kEvaluatorLost, ErrorCode::kInterrupted};
  return contains(kFatal, code);
}

Measurer::Measurer(const Task& task, const Budget& budget, CompilePool::Turns turns,
                   Milliseconds limit, const std::atomic<bool>* interrupted,
                   verify::EvaluatorPool* pool)
    : task_(task),
      budget_(budget),
      interrupted_(interrupted),
      evaluators_(pool),
      pool_(task.space.build, std::move(turns), limit) {}

// One that cannot be had is started when it is wanted, which says why.
void Measurer::begin(const verify::Setup& setup) {
  auto begun = verify::Evaluator::begin(setup, {.pool = evaluators_, .interrupted = interrupted_});
  if (begun) begun_ = *std::move(begun);
}

// What a set-up takes is what it says of itself where it began before this.
Status Measurer::start(const verify::Setup& setup, const Budget& budget) {
  const double before = budget_.spent();
  evaluator_ = std::exchange(begun_, std::nullopt);
  if (evaluator_) {
    const Status ready = evaluator_->await(budget.until());
    if (!ready) evaluator_.reset();
    if (!ready && ready.error().code == ErrorCode::kInterrupted) return ready;
  }
  if (!evaluator_) {
    auto started = verify::Evaluator::start(
        setup, {.pool = evaluators_, .interrupted = interrupted_, .until = budget.until()});
    WARPLOOM_TRY(evaluator_, std::move(started));
  }
  double once = 0;
  double all = 0;
  for (const verify::SetUpPart& part : evaluator_->ready().parts) {
    once += part.once ? part.seconds : 0;
    all += part.seconds;
  }
  costs_.set_up_took(std::max(all, budget_.spent() - before), once);
  costs_.family_took(evaluator_->ready().family_seconds);
  return ok();
}

// One that cannot be had is started when it is wanted, which says why.
void Measurer::stand_by(const verify::Setup& setup) {
  auto begun = verify::Evaluator::begin(setup, {.pool = evaluators_, .interrupted = interrupted_});
  if (begun) standby_ = *std::move(begun);
  costs_.stands_by(standby_.has_value());
}

Status Measurer::start_fresh(const verify::Setup& setup, const Budget& budget) {
  evaluator_.reset();
  if (!standby_) return start(setup, budget);
  evaluator_ = std::move(standby_);
  standby_.reset();
  costs_.stands_by(false);
  const Status ready = evaluator_->await(budget.until());
  if (ready || ready.error().code == ErrorCode::kInterrupted) return ready;
  return start(setup, budget);
}

// What was recorded needs no compiler.
void Measurer::submit(Candidate candidate) {
  const bool compiles = !candidate.judged_here && !task_.recorded;
  pool_.put(std::move(candidate), compiles);
}

Result<std::optional<Candidate>> Measurer::take(Milliseconds wait, const verify::Request& request) {
  std::optional<Compiled> compiled = pool_.take(wait);
  if (!compiled) return std::optional<Candidate>();
  costs_.compiling_took(compiled->seconds);
  Candidate candidate = std::move(compiled->candidate);
  candidate.compile_seconds = compiled->seconds;
  if (!candidate.judged_here)
    WARPLOOM_CHECK(measure(candidate, std::move(compiled->list), request));
  return std::optional(std::move(candidate));
}

Status Measurer::measure(Candidate& candidate, Result<LaunchList> list, verify::Request request) {
  if (list) {
    candidate.list = std::move(*list);
    request.list = candidate.list;
    // A stranger's text has a process to itself; its time compares with others' by a series.
    request.foreign = candidate.list.foreign;
    request.series = candidate.list.foreign;
    WARPLOOM_CHECK(judge(candidate, request));
  } else {
    candidate.verdict = {.error_found = list.error()};
  }
  const verify::Verdict& verdict = candidate.verdict;
  if (!verdict.accepted && is_fatal(verdict.error_found.code)) return fail(verdict.error_found);
  candidate.judged_here = true;
  candidate.promoted = request.whole && verdict.accepted;
  candidate.strain = std::max(candidate.strain, strain_of(verdict));
  if (candidate.screened_us == 0 && verdict.accepted) candidate.screened_us = verdict.median_us;
  if (!verdict.accepted) note_refusal(candidate);
  return ok();
}

Status Measurer::judge(Candidate& candidate, const verify::Request& request) {
  const bool screens = !request.whole && !request.beside_reference && !task_.recorded;
  const std::string text = screens ? hash_hex(to_json(candidate.list).dump()) : "";
  if (const auto known = screened_.find(text); known != screened_.end()) {
    candidate.verdict = known->second;
    return ok();
  }
  const double before = budget_.spent();
  auto verdict =
      task_.recorded ? task_.recorded(candidate.config, request) : evaluator_->judge(request);
  WARPLOOM_TRY(candidate.verdict, std::move(verdict));
  costs_.judging_took(budget_.spent() - before);
  if (screens && screened_.size() < kMostKept) screened_.emplace(text, candidate.verdict);
  return ok();
}

void Measurer::note_refusal(const Candidate& candidate) {
  const Error& why = candidate.verdict.error_found;
  ++refused_by_code_[std::string(code_text(why.code))];
  if (refused_++ > 0) return;
  first_refusal_ =
      fmt::format("; the first: {}: {} {}", candidate.config.text(), why.message, why.found);
}

std::string Measurer::refusals() const {
  if (refused_by_code_.empty()) return "none was judged";
  const auto counted = [](const auto& code) {
    return fmt::format("{} {}", code.second, code.first);
  };
  return listed(refused_by_code_, counted) + first_refusal_;
}
}  // namespace warploom::search
