#include "search/judging.h"
#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <utility>
#include "base/error.h"
#include "base/rows.h"
#include "codegen/launch_list.h"
#include "runtime/compile.h"
#include "search/candidate.h"
#include "verify/evaluator.h"
#include "verify/setup.h"

namespace warploom::search {
namespace {
using verify::Evaluator;
using verify::Verdict;

// A judge that says nothing for longer than a search of `seconds` allows will not say more.
double own_limit_ms(double seconds) {
  return 1e3 * std::clamp(3 * seconds, 20.0, 900.0);
}
}  // namespace

verify::Request quick_request(double budget_seconds, double known_us) {
  constexpr double kTimesSlower = 40;
  const double limit_ms = std::clamp(known_us / 1e3 * kTimesSlower, 2'000.0, 60'000.0);
  verify::Request request;
  request.check_ms = std::clamp(20 * budget_seconds, 200.0, 1500.0);
  request.beside_reference = false;
  request.min_samples = 3;
  request.max_samples = 30;
  request.timing_ms = 60;
  request.candidate_limit_ms = known_us > 0 ? limit_ms : 10'000;
  request.own_limit_ms = own_limit_ms(budget_seconds);
  return request;
}

verify::Request whole_request(const LaunchList& list, double seconds, double limit_ms) {
  verify::Request request;
  request.list = list;
  request.whole = true;
  request.check_ms = std::clamp(0.5 * seconds, 0.5, 60.0) * 1e3;
  request.min_samples = 10;
  request.max_samples = 200;
  request.timing_ms = std::clamp(0.15 * seconds, 0.1, 2.0) * 1e3;
  request.candidate_limit_ms = limit_ms;
  request.own_limit_ms = own_limit_ms(seconds);
  return request;
}

bool is_fatal(ErrorCode code) {
  constexpr std::array kFatal = {
      ErrorCode::kNoCompiler,     ErrorCode::kNoDriver,      ErrorCode::kNoGpu,
      ErrorCode::kNoNvrtc,        ErrorCode::kGpuTooOld,     ErrorCode::kDiskFull,
      ErrorCode::kFileUnwritable, ErrorCode::kEvaluatorLost, ErrorCode::kInterrupted};
  return contains(kFatal, code);
}

Result<Verdict> judge_plan(const verify::Setup& setup, const LaunchList& list, double seconds,
                           const std::atomic<bool>* interrupted, verify::Ready* ready) {
  WARPLOOM_TRY(auto evaluator, Evaluator::start(setup, {.interrupted = interrupted}));
  if (ready) *ready = evaluator.ready();
  WARPLOOM_TRY(Verdict verdict, evaluator.judge(whole_request(list, seconds, 60'000)));
  const Error& why = verdict.error_found;
  if (verdict.accepted) return verdict;
  if (is_fatal(why.code)) return fail(why);
  Error error{ErrorCode::kPlanWrong};
  error.message = "every region is right alone, the plan of them all is not";
  error.place = setup.graph.name;
  error.expected = why.expected;
  error.found = fmt::format("{}: {} {}", code_text(why.code), why.message, why.found);
  error.remedy = "take track tolerance, or report it";
  return fail(error);
}

Status Judging::judge(Candidate& candidate, Result<LaunchList> list, Evaluator& evaluator,
                      verify::Request request) {
  if (list) {
    candidate.list = std::move(*list);
    request.list = candidate.list;
    WARPLOOM_CHECK(take_verdict(candidate, evaluator, request));
  } else {
    candidate.verdict = {.error_found = list.error()};
  }
  const Verdict& verdict = candidate.verdict;
  if (!verdict.accepted && is_fatal(verdict.error_found.code)) return fail(verdict.error_found);
  candidate.judged_here = true;
  candidate.promoted = request.whole && verdict.accepted;
  if (candidate.screened_us == 0 && verdict.accepted) candidate.screened_us = verdict.median_us;
  if (!verdict.accepted) note_refusal(candidate);
  return archive_.record(candidate);
}

Status Judging::promote(Candidate& candidate, Result<LaunchList> list, Evaluator& evaluator,
                        const verify::Request& request) {
  // What an earlier run compiled is cached: by whom, lookup_result() will ask.
  if (list && candidate.compiler.empty() && !task_.recorded)
    if (const auto binary = runtime::compile(*list)) candidate.compiler = binary->compiler;
  return judge(candidate, std::move(list), evaluator, request);
}

Status Judging::take_verdict(Candidate& candidate, Evaluator& evaluator,
                             const verify::Request& request) {
  auto verdict =
      task_.recorded ? task_.recorded(candidate.config, request) : evaluator.judge(request);
  WARPLOOM_TRY(candidate.verdict, std::move(verdict));
  return ok();
}

void Judging::note_refusal(const Candidate& candidate) {
  const Error& why = candidate.verdict.error_found;
  ++refused_by_code_[std::string(code_text(why.code))];
  if (refused_++ > 0) return;
  first_refusal_ =
      fmt::format("; the first: {}: {} {}", candidate.config.text(), why.message, why.found);
}

std::string Judging::summary() const {
  if (refused_by_code_.empty()) return "none was judged";
  const auto counted = [](const auto& code) {
    return fmt::format("{} {}", code.second, code.first);
  };
  return listed(refused_by_code_, counted) + first_refusal_;
}
}  // namespace warploom::search
