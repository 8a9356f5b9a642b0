#include "search/plan_judge.h"
#include <fmt/format.h>
#include <algorithm>
#include <atomic>
#include <string>
#include <utility>
#include "base/error.h"
#include "codegen/launch_list.h"
#include "search/budget.h"
#include "search/measurer.h"
#include "search/requests.h"
#include "verify/evaluator.h"
#include "verify/setup.h"

namespace warploom::search {
PlanJudge::PlanJudge(verify::Setup setup, const std::atomic<bool>* interrupted,
                     verify::EvaluatorPool* pool)
    : setup_(std::move(setup)), interrupted_(interrupted), evaluators_(pool) {}

// What cannot be had is started when it is wanted, which says why.
void PlanJudge::begin(double ready_seconds) {
  setup_.ready_ms = 1e3 * ready_seconds;
  auto begun = verify::Evaluator::begin(setup_, {.pool = evaluators_, .interrupted = interrupted_});
  if (begun) evaluator_ = *std::move(begun);
}

Result<verify::Verdict> PlanJudge::judge(const LaunchList& list, const Slice& slice) {
  const Budget& budget = slice.hard;
  constexpr double kReadyShare = 0.3;  // of the time that is left
  constexpr double kLaunchMs = 60'000;
  if (budget.is_over())
    return fail({ErrorCode::kInterrupted, "the time was up before the plan was judged", "", "", "",
                 "run again to go on"});
  if (evaluator_ && !ready_) {
    const Status begun = evaluator_->await(budget.until());
    if (!begun) evaluator_.reset();
    if (!begun && begun.error().code == ErrorCode::kInterrupted) return fail(begun.error());
  }
  if (!evaluator_) {
    setup_.ready_ms = 1e3 * kReadyShare * std::clamp(slice.soft.left(), 0.1, 100.0);
    auto started = verify::Evaluator::start(
        setup_, {.pool = evaluators_, .interrupted = interrupted_, .until = budget.until()});
    WARPLOOM_TRY(evaluator_, std::move(started));
  }
  ready_ = evaluator_->ready();
  const double before = budget.spent();
  verify::Request request = whole_request(slice, kLaunchMs);
  request.list = list;
  request.foreign = list.foreign;
  WARPLOOM_TRY(verify::Verdict verdict, evaluator_->judge(request));
  seconds_ = std::max(seconds_, budget.spent() - before);
  const Error& why = verdict.error_found;
  if (verdict.accepted) return verdict;
  if (is_fatal(why.code)) return fail(why);
  Error error{ErrorCode::kPlanWrong};
  error.message = "every region is right alone, the plan of them all is not";
  error.place = setup_.graph.name;
  error.expected = why.expected;
  const std::string place = why.place.empty() ? "" : fmt::format(" ({})", why.place);
  error.found = fmt::format("{}: {}{}: {}", code_text(why.code), why.message, place, why.found);
  error.remedy = "take track tolerance, or report it";
  return fail(std::move(error));
}

// The seconds are what is aimed at: only the judge's own limits end it.
Result<verify::Verdict> judge_plan(const verify::Setup& setup, const LaunchList& list,
                                   double seconds) {
  return PlanJudge(setup).judge(list, {.soft = Budget(seconds), .hard = Budget::endless()});
}
}  // namespace warploom::search
