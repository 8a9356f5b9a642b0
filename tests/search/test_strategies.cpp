// Strategies that take actions, and the baselines, over a space whose verdicts are recorded.
#include <gtest/gtest.h>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>
#include "base/casts.h"
#include "base/random.h"
#include "kernels/config/kernel_config.h"
#include "kernels/config/reader.h"
#include "recording.h"
#include "search/action/action.h"
#include "search/policy/state.h"
#include "search/strategy/curves.h"
#include "search/strategy/forest.h"
#include "search/strategy/strategy.h"

namespace warploom::search {
namespace {
constexpr Strategy kAll[] = {Strategy::enumerate, Strategy::random, Strategy::beam,
                             Strategy::linear,    Strategy::branch, Strategy::tree,
                             Strategy::evolution, Strategy::lfbo};
constexpr Strategy kWithActions[] = {Strategy::linear, Strategy::branch, Strategy::tree,
                                     Strategy::evolution};

const char* name_of(Strategy strategy) {
  return kStrategyNames[as_size(strategy)];
}

const Recording& recording() {
  static const Recording kRecording = made_up_recording();
  return kRecording;
}

StrategyPtr fresh(Strategy strategy, uint64_t seed = 1) {
  return make_strategy(strategy,
                       {.space = &recording().space, .seed = seed, .actions = recording().actions});
}

TEST(ClosedSpace, HoldsTheValuesThatAreNamedAlone) {
  EXPECT_GT(recording().verdicts.size(), 100u);
  EXPECT_LE(recording().verdicts.size(), 600u);
  for (const auto& [text, judged] : recording().verdicts)
    if (judged.config.family() == "direct") {
      EXPECT_TRUE(judged.config.get("tile_x") == 16 || judged.config.get("tile_x") == 32) << text;
    }
}

TEST(Strategies, TheSameSeedAndTimesGiveTheSameSequence) {
  for (const Strategy strategy : kAll) {
    const ReplaySetup setup{.strategy = strategy, .seed = 7, .most = 130};
    EXPECT_EQ(curve_of(recording(), setup).sequence, curve_of(recording(), setup).sequence)
        << name_of(strategy);
  }
}

TEST(Strategies, AnotherSeedGivesAnotherSequence) {
  for (const Strategy strategy : {Strategy::random, Strategy::linear, Strategy::branch,
                                  Strategy::evolution, Strategy::lfbo}) {
    const auto one = curve_of(recording(), {.strategy = strategy, .seed = 1, .most = 60});
    const auto other = curve_of(recording(), {.strategy = strategy, .seed = 2, .most = 60});
    EXPECT_NE(one.sequence, other.sequence) << name_of(strategy);
  }
}

TEST(Strategies, ProposeRecordedConfigsAndNoneTwice) {
  for (const Strategy strategy : kAll) {
    const auto curve = curve_of(recording(), {.strategy = strategy, .most = 200});
    const std::set<std::string> different(curve.sequence.begin(), curve.sequence.end());
    EXPECT_EQ(different.size(), curve.sequence.size()) << name_of(strategy);
    for (const std::string& text : different)
      EXPECT_TRUE(recording().verdicts.contains(text)) << name_of(strategy) << " " << text;
  }
}

TEST(Strategies, GoOnUntilAllIsTriedButForTheLinearOne) {
  const int all = as_int(recording().verdicts.size());
  for (const Strategy strategy : kAll) {
    const auto curve = curve_of(recording(), {.strategy = strategy, .most = all + 10});
    if (strategy == Strategy::linear)
      EXPECT_LT(as_int(curve.sequence.size()), all);
    else
      EXPECT_EQ(as_int(curve.sequence.size()), all) << name_of(strategy);
  }
}

TEST(Strategies, EveryStepIsTheActionThatLeadsFromItsParent) {
  for (const Strategy strategy : kWithActions) {
    const StrategyPtr one = fresh(strategy);
    int steps = 0;
    for (int i = 0; i < 80; ++i) {
      const std::optional<Proposal> next = one->ask();
      if (!next) break;
      if (next->action) {
        ++steps;
        const auto parent = kernels::config_from_text(next->parents.at(0));
        ASSERT_TRUE(parent);
        const auto made = carry_out(recording().space, *next->action, *parent);
        ASSERT_TRUE(made) << next->action->sentence;
        EXPECT_EQ(*made, next->config) << name_of(strategy);
      }
      one->tell(made_up(next->config));
    }
    EXPECT_GT(steps, 10) << name_of(strategy);
  }
}

TEST(Strategies, MayBeginAtOneConfigThatTheSeedDraws) {
  std::set<std::string> first;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const auto curve = curve_of(
        recording(), {.strategy = Strategy::tree, .seed = seed, .most = 20, .start = Start::drawn});
    first.insert(curve.sequence.at(0));
  }
  EXPECT_GE(first.size(), 4u);
}

// Medians over seeds of what the best of 48 candidates comes to.
double share_of(Strategy strategy) {
  std::vector<double> shares;
  for (uint64_t seed = 1; seed <= 41; ++seed)
    shares.push_back(
        curve_of(recording(), {.strategy = strategy, .seed = seed, .most = 48}).share_at(48));
  return median_interval(shares).median;
}

TEST(Strategies, ThatTakeActionsComeFurtherThanChance) {
  const double random = share_of(Strategy::random);
  for (const Strategy strategy : {Strategy::branch, Strategy::tree, Strategy::evolution})
    EXPECT_GT(share_of(strategy), random) << name_of(strategy);
}

TEST(Strategies, LfboComesFurtherThanChanceBehindItsRandomStart) {
  std::vector<double> gained;
  for (uint64_t seed = 1; seed <= 7; ++seed) {
    const auto lfbo = curve_of(recording(), {.strategy = Strategy::lfbo, .seed = seed});
    const auto random = curve_of(recording(), {.strategy = Strategy::random, .seed = seed});
    gained.push_back(lfbo.share_at(140) - random.share_at(140));
  }
  EXPECT_GE(median_interval(gained).median, 0);
}

TEST(Strategies, TheLinearOneWaitsForTheVerdictOfItsStep) {
  const StrategyPtr linear = fresh(Strategy::linear);
  std::vector<kernels::KernelConfig> starts;
  while (const auto next = linear->ask())
    starts.push_back(next->config);
  EXPECT_EQ(starts.size(), recording().space.families.size());
  for (const auto& start : starts)
    linear->tell({.config = start, .accepted = true, .us = 100});
  const auto step = linear->ask();
  ASSERT_TRUE(step);
  EXPECT_FALSE(linear->ask());
  linear->tell({.config = step->config});
  EXPECT_TRUE(linear->ask());
}

TEST(Strategies, TheLinearOneStepsFromTheFastestAlone) {
  const StrategyPtr linear = fresh(Strategy::linear);
  std::string best;
  double best_us = 0;
  for (int i = 0; i < 60; ++i) {
    const auto next = linear->ask();
    if (!next) break;
    if (!next->parents.empty()) {
      EXPECT_EQ(next->parents[0], best);
    }
    const Judged judged = made_up(next->config);
    linear->tell(judged);
    if (judged.accepted && (best_us <= 0 || judged.us < best_us)) {
      best_us = judged.us;
      best = next->config.text();
    }
  }
}

TEST(Strategies, SeveralCandidatesMayBeOutAtOnce) {
  for (const Strategy strategy :
       {Strategy::branch, Strategy::tree, Strategy::evolution, Strategy::lfbo}) {
    const StrategyPtr one = fresh(strategy);
    std::vector<kernels::KernelConfig> out;
    std::set<std::string> seen;
    for (int i = 0; i < 300; ++i) {
      const auto next = one->ask();
      if (next) {
        EXPECT_TRUE(seen.insert(next->config.text()).second) << name_of(strategy);
        out.push_back(next->config);
      }
      const bool tells = out.size() >= 4 || (!next && !out.empty());
      if (!tells) continue;
      one->tell(made_up(out.back()));  // the last that was asked for comes first
      out.pop_back();
    }
    EXPECT_GT(seen.size(), 80u) << name_of(strategy);
  }
}

TEST(Strategies, WhatIsSuggestedComesFirstAndWhatIsSkippedNever) {
  kernels::KernelConfig wanted;
  kernels::KernelConfig skipped;
  for (const auto& [text, judged] : recording().verdicts) {
    skipped = wanted;
    wanted = judged.config;
  }
  for (const Strategy strategy : kAll) {
    const StrategyPtr one = fresh(strategy);
    one->skip(skipped);
    one->suggest(wanted);
    const auto first = one->ask();
    ASSERT_TRUE(first) << name_of(strategy);
    EXPECT_EQ(first->config, wanted) << name_of(strategy);
    for (auto next = first; next; next = one->ask()) {
      EXPECT_NE(next->config, skipped) << name_of(strategy);
      one->tell(made_up(next->config));
    }
  }
}

// An earlier search's best is known, and judged again first: else a search of what is all known
// would end with nothing.
TEST(Strategies, WhatAnEarlierSearchFoundBestIsProposedAgain) {
  const kernels::KernelConfig best = recording().verdicts.begin()->second.config;
  for (const Strategy strategy : kAll) {
    const StrategyPtr one = fresh(strategy);
    for (const auto& [text, judged] : recording().verdicts) {
      one->skip(judged.config);
      if (judged.accepted) one->tell(judged);
    }
    one->suggest(best);
    const auto first = one->ask();
    ASSERT_TRUE(first) << name_of(strategy);
    EXPECT_EQ(first->config, best) << name_of(strategy);
  }
}

TEST(Strategies, TheTreeDoesNotGoOnFromWhatWasRefused) {
  const StrategyPtr tree = fresh(Strategy::tree);
  std::set<std::string> refused;
  for (int i = 0; i < 150; ++i) {
    const auto next = tree->ask();
    if (!next) break;
    if (!next->parents.empty()) {
      EXPECT_FALSE(refused.contains(next->parents[0]));
    }
    const Judged judged = made_up(next->config);
    if (!judged.accepted) refused.insert(next->config.text());
    tree->tell(judged);
  }
  EXPECT_GT(refused.size(), 0u);
}

TEST(Strategies, WhereAllIsRefusedTheyGoOnElsewhere) {
  for (const Strategy strategy :
       {Strategy::branch, Strategy::tree, Strategy::evolution, Strategy::lfbo}) {
    const StrategyPtr one = fresh(strategy);
    for (int i = 0; i < 40; ++i) {
      const auto next = one->ask();
      ASSERT_TRUE(next) << name_of(strategy) << " " << i;
      one->tell({.config = next->config, .is_wrong = true});
    }
  }
}

TEST(Forest, TellsRowsApartByTheColumnsThatDecide) {
  Random random(1);
  std::vector<Row> rows;
  std::vector<double> weights;
  const auto is_good = [](const Row& row) { return row[1] > 0.5 && row[3] < 0.5; };
  for (int i = 0; i < 300; ++i) {
    Row row(5);
    for (double& one : row)
      one = random.uniform();
    weights.push_back(is_good(row) ? 1 : 0);
    rows.push_back(row);
  }
  const Forest forest(rows, weights, random);
  int right = 0;
  for (int i = 0; i < 200; ++i) {
    Row row(5);
    for (double& one : row)
      one = random.uniform();
    right += (forest.probability(row) > 0.5) == is_good(row) ? 1 : 0;
  }
  EXPECT_GT(right, 180);
}

TEST(Curves, CountCandidatesUntilAShareOfTheBest) {
  const Curve curve{.share = {0, 0.5, 0.96, 0.96, 1}};
  EXPECT_EQ(curve.candidates_to(0.95), 3);
  EXPECT_EQ(curve.candidates_to(0.98), 5);
  EXPECT_EQ(Curve{.share = {0.5}}.candidates_to(0.95), std::nullopt);
  EXPECT_EQ(curve.share_at(2), 0.5);
  EXPECT_EQ(curve.share_at(100), 1);
}

TEST(Curves, MediansHoldWhatNeverCame) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  const std::vector<double> half = {1, 2, 3, 4, kNever};
  EXPECT_EQ(median_interval(half).median, 3);
  const std::vector<double> never = {1, kNever, kNever};
  EXPECT_TRUE(std::isinf(median_interval(never).median));
}
}  // namespace
}  // namespace warploom::search
