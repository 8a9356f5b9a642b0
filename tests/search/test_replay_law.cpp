// The law of replays: the same seed and the same recorded times give the same sequence of
// candidates and the same result, whichever strategy and policy, on another day and with nothing
// remembered.
#include <gtest/gtest.h>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>
#include "archive/archive.h"
#include "base/casts.h"
#include "base/error.h"
#include "base/file.h"
#include "kernels/config/kernel_config.h"
#include "recording.h"
#include "search/lineage.h"
#include "search/options.h"
#include "search/outcome.h"
#include "search/policy/policy.h"
#include "search/policy/state.h"
#include "search/strategy/curves.h"
#include "search/strategy/strategy.h"
#include "search/task.h"
#include "search/tuning_session.h"
#include "verify/evaluator.h"

namespace warploom::search {
namespace {
constexpr Strategy kAll[] = {Strategy::enumerate, Strategy::random, Strategy::beam,
                             Strategy::linear,    Strategy::branch, Strategy::tree,
                             Strategy::evolution, Strategy::lfbo};
constexpr PolicyKind kPolicies[] = {PolicyKind::uniform, PolicyKind::analytic, PolicyKind::learned};

bool takes_actions(Strategy strategy) {
  return strategy == Strategy::linear || strategy == Strategy::branch ||
         strategy == Strategy::tree || strategy == Strategy::evolution;
}

std::string name_of(Strategy strategy, PolicyKind policy) {
  return std::string(kStrategyNames[as_size(strategy)]) + ", " + kPolicyNames[as_size(policy)];
}

// Of a recording, a space and a policy that nobody else has used.
Curve curve(Strategy strategy, PolicyKind policy, uint64_t seed, Start start) {
  return curve_of(made_up_recording(), {.strategy = strategy,
                                        .policy = *make_policy(policy),
                                        .seed = seed,
                                        .most = 48,
                                        .start = start});
}

void expect_repeated(PolicyKind policy) {
  for (const Strategy strategy : kAll) {
    if (!takes_actions(strategy) && policy != PolicyKind::uniform) continue;
    for (const Start start : {Start::guessed, Start::drawn}) {
      const Curve one = curve(strategy, policy, 7, start);
      const Curve again = curve(strategy, policy, 7, start);
      EXPECT_FALSE(one.sequence.empty());
      EXPECT_EQ(one.sequence, again.sequence) << name_of(strategy, policy);
      EXPECT_EQ(one.share, again.share) << name_of(strategy, policy);
    }
  }
}

TEST(ReplayLaw, HoldsForEachStrategyByTheUniformPolicy) {
  expect_repeated(PolicyKind::uniform);
}

TEST(ReplayLaw, HoldsForEachStrategyByTheAnalyticPolicy) {
  expect_repeated(PolicyKind::analytic);
}

TEST(ReplayLaw, HoldsForEachStrategyByTheLearnedPolicy) {
  expect_repeated(PolicyKind::learned);
}

// Whole searches, with an archive each.
class RecordedSearches : public testing::Test {
 protected:
  struct Found {
    std::vector<std::string> sequence;
    std::string best;
    double best_us = 0;
    std::vector<archive::Candidate> kept;
  };

  Found search(Strategy strategy, PolicyKind policy, uint64_t seed) {
    Task task = make_task(recording_.space.region, recording_.space.capabilities, seed);
    task.space = recording_.space;
    Found out;
    task.recorded = [&](const kernels::KernelConfig& config, const verify::Request&) {
      out.sequence.push_back(config.text());
      const Judged judged = made_up(config);
      verify::Verdict verdict;
      verdict.accepted = judged.accepted;
      verdict.median_us = judged.us;
      if (!judged.accepted) verdict.error_found = {ErrorCode::kCandidateWrong, "made up"};
      return Result<verify::Verdict>(verdict);
    };
    Options options;
    options.archive = (folder_.path() / (std::to_string(++searches_) + ".sqlite")).string();
    options.strategy = strategy;
    options.policy = policy;
    options.seed = seed;
    options.max_candidates = 24;
    options.jobs = 1;
    const auto outcome = tune(task, options);
    EXPECT_TRUE(outcome) << describe(outcome.error());
    if (!outcome) return out;
    out.best = outcome->schedule.text();
    out.best_us = outcome->verdict.median_us;
    auto from = *archive::Archive::open(options.archive);
    out.kept = *from.candidates(outcome->key);
    return out;
  }

  ScratchFolder folder_{"replay-law"};
  const Recording recording_ = made_up_recording();
  int searches_ = 0;
};

TEST_F(RecordedSearches, HaveTheSameSequenceAndResultBySeedAndTimes) {
  for (const Strategy strategy : kAll)
    for (const PolicyKind policy : kPolicies) {
      if (!takes_actions(strategy) && policy != PolicyKind::uniform) continue;
      const Found one = search(strategy, policy, 5);
      const Found again = search(strategy, policy, 5);
      EXPECT_GT(one.sequence.size(), 20u) << name_of(strategy, policy);
      EXPECT_EQ(one.sequence, again.sequence) << name_of(strategy, policy);
      EXPECT_EQ(one.best, again.best) << name_of(strategy, policy);
      EXPECT_EQ(one.best_us, again.best_us) << name_of(strategy, policy);
    }
}

// Each candidate with its parents and its action: carried out anew, they lead to it.
TEST_F(RecordedSearches, EachCandidatesStepsLeadToItAgain) {
  for (const Strategy strategy : kAll) {
    size_t steps = 0;
    for (const Found found = search(strategy, PolicyKind::analytic, 3);
         const archive::Candidate& one : found.kept) {
      const Lineage lineage = lineage_of(found.kept, one.schedule);
      bool is_told = true;  // a child of two parents has no action
      for (size_t i = 1; i < lineage.size(); ++i)
        is_told &= lineage[i].action.is_object();
      if (!is_told || lineage.size() < 2) continue;
      const auto made = replay(recording_.space, lineage);
      ASSERT_TRUE(made) << describe(made.error());
      EXPECT_EQ(made->text(), one.schedule);
      ++steps;
    }
    EXPECT_TRUE(steps > 0 || !takes_actions(strategy)) << kStrategyNames[as_size(strategy)];
  }
}
}  // namespace
}  // namespace warploom::search
