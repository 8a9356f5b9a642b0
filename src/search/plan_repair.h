// Plan repair: regions may be right alone and wrong together. Then plans that are more and more
// exact are judged until one is right.
//
//   judge_until_right({.judge = [&] { return judged(list); },
//                      .take_more_exact = [&] { return changed_one_region(); },
//                      .take_fallbacks = [&] { return changed_all(); },
//                      .is_last = [&] { return time_for_one_more_alone; }})
//
// Gives the verdict that accepts a plan. Fails with kPlanWrong where no other plan is left, and
// with whatever else judging fails with.
#pragma once
#include <functional>
#include "base/error.h"
#include "verify/evaluator.h"

namespace warploom::search {
struct PlanRepair {
  std::function<Result<verify::Verdict>()> judge;  // the plan as it is now
  // Change the plan: one region by a more exact candidate, or every region by its fallback. False:
  // nothing is left to change.
  std::function<bool()> take_more_exact;
  std::function<bool()> take_fallbacks;
  std::function<bool()> is_last = {};  // whether there is time for no more than one judgement
};

inline Result<verify::Verdict> judge_until_right(const PlanRepair& plan) {
  Result<verify::Verdict> verdict = plan.judge();
  while (!verdict && verdict.error().code == ErrorCode::kPlanWrong) {
    const bool is_last = plan.is_last && plan.is_last();
    const bool is_changed = is_last ? plan.take_fallbacks() : plan.take_more_exact();
    if (!is_changed) return verdict;
    verdict = plan.judge();
  }
  return verdict;
}
}  // namespace warploom::search
