// A session and its budget, on a clock that only verdicts move, which are made here: no test waits.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <algorithm>
#include <functional>
#include <string>
#include <vector>
#include "base/error.h"
#include "base/file.h"
#include "fake_family.h"
#include "kernels/config/kernel_config.h"
#include "search/budget.h"
#include "search/options.h"
#include "search/strategy/strategy.h"
#include "search/task.h"
#include "search/tuning_session.h"
#include "verify/evaluator.h"

namespace warploom::search {
namespace {
using kernels::KernelConfig;

verify::Verdict right(double us, double share_of_bound = 0.5) {
  verify::Verdict out;
  out.accepted = true;
  out.median_us = us;
  out.evidence = {{.error = share_of_bound, .bound = 1}};
  return out;
}

verify::Verdict wrong() {
  verify::Verdict out;
  out.error_found = {ErrorCode::kCandidateWrong, "made to be wrong"};
  return out;
}

class SessionBudget : public testing::Test {
 protected:
  void SetUp() override { ::setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1); }

  ScratchFolder folder_{"session-budget"};
  const FakeFamily family_{{"right", "slow"}, 400};
  double clock_ = 0;
  double judging_ = 1;  // seconds that a verdict takes
  std::vector<std::string> asked_;

  using Verdicts = std::function<verify::Verdict(const KernelConfig&, const verify::Request&)>;

  Task task(const Verdicts& verdicts) {
    Task out = task_of(family_);
    out.recorded = [this, verdicts](const KernelConfig& config,
                                    const verify::Request& request) -> Result<verify::Verdict> {
      clock_ += judging_;
      asked_.push_back(config.text());
      return verdicts(config, request);
    };
    return out;
  }

  Options options(double seconds) {
    Options out;
    out.budget_seconds = seconds;
    out.archive = folder_.path() / "archive.sqlite";
    out.strategy = Strategy::beam;
    out.now = [this] { return clock_; };
    return out;
  }
};

TEST_F(SessionBudget, ASearchEndsWithinItWithItsLastRounds) {
  const auto faster = [](const KernelConfig& config, const verify::Request&) {
    return right(1000 - static_cast<double>(config.get("variant").value_or(0)));
  };
  const auto outcome = tune(task(faster), options(40));
  ASSERT_TRUE(outcome) << describe(outcome.error());
  EXPECT_LE(clock_, 40);
  EXPECT_GE(outcome->candidates, 20);
  EXPECT_TRUE(outcome->proven);
}

TEST_F(SessionBudget, WhereNothingIsRightByItsEndItSaysWhatWouldBeNeeded) {
  const auto never = [](const KernelConfig&, const verify::Request&) { return wrong(); };
  const auto outcome = tune(task(never), options(10));
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, ErrorCode::kNoCorrectCandidate);
  EXPECT_EQ(clock_, 10);
  EXPECT_NE(outcome.error().found.find("10 candidate-wrong"), std::string::npos)
      << outcome.error().found;
  EXPECT_NE(outcome.error().remedy.find("--budget 15s"), std::string::npos)
      << outcome.error().remedy;
}

TEST_F(SessionBudget, OneThatIsTooSmallForACandidateSaysWhatThatTook) {
  judging_ = 30;
  const auto never = [](const KernelConfig&, const verify::Request&) { return wrong(); };
  const auto outcome = tune(task(never), options(2));
  ASSERT_FALSE(outcome);
  EXPECT_NE(outcome.error().found.find("30.0 s"), std::string::npos) << outcome.error().found;
  EXPECT_NE(outcome.error().remedy.find("--budget 90s"), std::string::npos)
      << outcome.error().remedy;
}

TEST_F(SessionBudget, WhatCouldNotBeJudgedWholeInTimeIsRightInParts) {
  Task late = task_of(family_);
  late.recorded = [this](const KernelConfig&,
                         const verify::Request& request) -> Result<verify::Verdict> {
    clock_ += judging_;
    if (!request.whole) return right(100);
    return fail({ErrorCode::kInterrupted, "the time was up"});
  };
  const auto outcome = tune(late, options(10));
  ASSERT_TRUE(outcome) << describe(outcome.error());
  EXPECT_FALSE(outcome->proven);
  EXPECT_EQ(outcome->verdict.median_us, 100);
  const auto again = tune(late, options(10));
  EXPECT_FALSE(again && again->recalled);
}

TEST_F(SessionBudget, NearTheFloorNothingMoreIsTried) {
  const auto fast = [](const KernelConfig&, const verify::Request&) { return right(102); };
  Task near = task(fast);
  near.setup.floor_us = 100;
  const auto outcome = tune(near, options(1000));
  ASSERT_TRUE(outcome) << describe(outcome.error());
  EXPECT_EQ(outcome->candidates, 1);
}

TEST_F(SessionBudget, ASearchEndsWhereManyCandidatesGainedNothing) {
  const auto alike = [](const KernelConfig&, const verify::Request&) { return right(100); };
  const auto outcome = tune(task(alike), options(100'000));
  ASSERT_TRUE(outcome) << describe(outcome.error());
  EXPECT_LT(outcome->candidates, 200);
}

TEST_F(SessionBudget, ASessionGoesOnWhereItsLastSliceEnded) {
  const auto slower = [](const KernelConfig& config, const verify::Request&) {
    return right(100 + static_cast<double>(config.get("variant").value_or(0)));
  };
  const Task sliced = task(slower);
  const Options asked = options(100);
  const Budget budget(100, asked.now);
  TuningSession session(sliced, asked, budget, turns_for(asked));
  ASSERT_TRUE(session.open());
  ASSERT_TRUE(session.begin());
  ASSERT_TRUE(session.search({.soft = budget, .hard = budget, .until_right = true}));
  EXPECT_EQ(session.candidates(), 1);
  for (int slice = 0; slice < 3; ++slice)
    ASSERT_TRUE(session.search({.soft = budget.part(5), .hard = budget}));
  EXPECT_GE(session.candidates(), 12);
  std::ranges::sort(asked_);
  EXPECT_EQ(std::ranges::adjacent_find(asked_), asked_.end());
}

// Two candidates right and near their bound, one far from it and slower.
TEST_F(SessionBudget, APlanThatIsWrongMayTakeAMoreExactCandidate) {
  const auto exact_is_slow = [](const KernelConfig& config, const verify::Request&) {
    const bool slow = config.get("body").value_or(0) == 1;
    return slow ? right(200, 0.1) : right(100, 0.9);
  };
  const Task strained = task(exact_is_slow);
  Options asked = options(1000);
  asked.max_candidates = 12;
  const Budget budget(1000, asked.now);
  TuningSession session(strained, asked, budget, turns_for(asked));
  ASSERT_TRUE(session.open());
  ASSERT_TRUE(session.begin());
  ASSERT_TRUE(session.search({.soft = budget, .hard = budget}));
  EXPECT_EQ(session.conclude()->verdict.median_us, 100);
  EXPECT_DOUBLE_EQ(session.strain(), 0.9);
  ASSERT_TRUE(session.take_more_exact());
  EXPECT_EQ(session.conclude()->verdict.median_us, 200);
  ASSERT_TRUE(session.take_more_exact());  // the fallback
  EXPECT_EQ(session.conclude()->schedule.as<FakeConfig>().body, 0);
  EXPECT_FALSE(session.take_fallback());
  session.take_winner();
  EXPECT_EQ(session.conclude()->verdict.median_us, 100);
}

TEST_F(SessionBudget, ARegionThatWasNotJudgedMayStandInWithItsFallback) {
  const auto never = [](const KernelConfig&, const verify::Request&) { return wrong(); };
  const Task unjudged = task(never);
  const Options asked = options(10);
  TuningSession session(unjudged, asked, Budget(10, asked.now), turns_for(asked));
  ASSERT_TRUE(session.open());
  ASSERT_TRUE(session.take_fallback());
  const auto outcome = session.conclude();
  ASSERT_TRUE(outcome) << describe(outcome.error());
  EXPECT_FALSE(outcome->proven);
  EXPECT_EQ(outcome->verdict.median_us, 0);
  EXPECT_FALSE(outcome->list.kernels.empty());
}
}  // namespace
}  // namespace warploom::search
