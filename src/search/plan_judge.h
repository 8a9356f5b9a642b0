// PlanJudge: a plan of several regions judged whole, in a process of its own, on inputs that no
// region was judged on. The process stays for other plans of the same graph.
//
//   PlanJudge judge(setup, interrupted);
//   const Result<verify::Verdict> verdict = judge.judge(list, {.soft = budget, .hard = budget});
//
// Gives the verdict that accepts the plan. Fails with kPlanWrong where it is refused; kInterrupted
// where somebody interrupted or the budget is over; and with what the machine lacks.
#pragma once
#include <atomic>
#include <optional>
#include "base/error.h"
#include "codegen/launch_list.h"
#include "search/requests.h"
#include "verify/evaluator.h"
#include "verify/setup.h"

namespace warploom::search {
class PlanJudge {
 public:
  // `pool`: whose process it takes, where one waits.
  explicit PlanJudge(verify::Setup setup, const std::atomic<bool>* interrupted = nullptr,
                     verify::EvaluatorPool* pool = nullptr);

  // The process gets ready by itself, for the first judgement; its set-up aims at so long.
  void begin(double ready_seconds);

  Result<verify::Verdict> judge(const LaunchList& list, const Slice& slice);

  // Whether the process is there, ready or not.
  bool has_begun() const { return evaluator_.has_value(); }

  // What the process said of itself and its reference; nothing before the first judgement.
  const std::optional<verify::Ready>& ready() const { return ready_; }

  // That the longest judgement took; starting the process, once, is no part of it.
  double seconds() const { return seconds_; }

 private:
  verify::Setup setup_;
  const std::atomic<bool>* interrupted_;
  verify::EvaluatorPool* evaluators_;
  std::optional<verify::Evaluator> evaluator_;
  std::optional<verify::Ready> ready_;
  double seconds_ = 0;
};

// One plan, in about so many seconds; for who judges no other.
Result<verify::Verdict> judge_plan(const verify::Setup& setup, const LaunchList& list,
                                   double seconds);
}  // namespace warploom::search
