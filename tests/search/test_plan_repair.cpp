// What is judged in place of a plan that is wrong though its regions are right alone.
#include <gtest/gtest.h>
#include <string>
#include "base/error.h"
#include "search/plan_repair.h"
#include "verify/evaluator.h"

namespace warploom::search {
namespace {
// A plan that is right once it was changed so often.
struct Plan {
  int wrong = 0;      // changes until it is right
  int exact = 100;    // changes to a more exact candidate that there are
  bool last = false;  // the time is short
  bool fallbacks_left = true;
  std::string log = {};

  Result<verify::Verdict> judged() {
    log += 'j';
    if (wrong > 0) return fail({ErrorCode::kPlanWrong, "made to be wrong"});
    return verify::Verdict{.accepted = true};
  }

  bool changed(char what, bool is_left) {
    if (!is_left) return false;
    log += what;
    wrong -= what == 'f' ? wrong : 1;
    return true;
  }

  PlanRepair repair() {
    return {.judge = [this] { return judged(); },
            .take_more_exact = [this] { return changed('e', exact-- > 0); },
            .take_fallbacks =
                [this] {
                  const bool is_left = fallbacks_left;
                  fallbacks_left = false;
                  return changed('f', is_left);
                },
            .is_last = [this] { return last; }};
  }
};

TEST(PlanRepair, APlanThatIsRightIsLeft) {
  Plan plan;
  EXPECT_TRUE(judge_until_right(plan.repair()));
  EXPECT_EQ(plan.log, "j");
}

TEST(PlanRepair, AWrongPlanIsMadeMoreExactUntilItIsRight) {
  Plan plan{.wrong = 2};
  EXPECT_TRUE(judge_until_right(plan.repair()));
  EXPECT_EQ(plan.log, "jejej");
}

TEST(PlanRepair, WhereTheTimeIsShortFallbacksAreTakenEverywhere) {
  Plan plan{.wrong = 5, .last = true};
  EXPECT_TRUE(judge_until_right(plan.repair()));
  EXPECT_EQ(plan.log, "jfj");
}

TEST(PlanRepair, APlanThatNothingIsLeftForIsWrong) {
  Plan plan{.wrong = 5, .exact = 1};
  const auto verdict = judge_until_right(plan.repair());
  ASSERT_FALSE(verdict);
  EXPECT_EQ(verdict.error().code, ErrorCode::kPlanWrong);
  EXPECT_EQ(plan.log, "jej");
}

TEST(PlanRepair, WhatElseFailsIsNotRepaired) {
  Plan plan;
  PlanRepair repair = plan.repair();
  repair.judge = []() -> Result<verify::Verdict> {
    return fail({ErrorCode::kInterrupted, "the time was up"});
  };
  const auto verdict = judge_until_right(repair);
  ASSERT_FALSE(verdict);
  EXPECT_EQ(verdict.error().code, ErrorCode::kInterrupted);
  EXPECT_EQ(plan.log, "");
}
}  // namespace
}  // namespace warploom::search
