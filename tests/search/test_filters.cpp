// What a policy promises little of is taken last, and what is near is taken first.
#include <gtest/gtest.h>
#include <cstddef>
#include <memory>
#include <optional>
#include <ranges>
#include <set>
#include <span>
#include <string>
#include <vector>
#include "kernels/config/kernel_config.h"
#include "recording.h"
#include "search/action/action.h"
#include "search/policy/policy.h"
#include "search/policy/state.h"
#include "search/strategy/curves.h"
#include "search/strategy/strategy.h"

namespace warploom::search {
namespace {
using kernels::KernelConfig;

// All actions alike; configs with B packed are promised nothing.
class DoubtfulPolicy final : public Policy {
 public:
  std::string name() const override { return "doubtful"; }

  std::vector<double> weights(const State&, std::span<const Action> actions) override {
    return std::vector<double>(actions.size(), 1.0 / static_cast<double>(actions.size()));
  }

  std::optional<double> promise(const State&, const KernelConfig& config) override {
    return config.get("pack_b").value_or(0) > 0 ? 0.001 : 0.5;
  }
};

// How many of the first proposals that are no starts pack B.
int packed_among_first(const Recording& recording, double unlikely) {
  const StrategyPtr strategy =
      make_strategy(Strategy::branch, {.space = &recording.space,
                                       .seed = 1,
                                       .policy = std::make_shared<DoubtfulPolicy>(),
                                       .unlikely = unlikely});
  int packed = 0;
  int steps = 0;
  while (steps < 20) {
    const auto next = strategy->ask();
    if (!next) break;
    strategy->tell(recording.verdicts.at(next->config.text()));
    if (!next->action) continue;
    ++steps;
    packed += next->config.get("pack_b").value_or(0) > 0 ? 1 : 0;
  }
  return packed;
}

TEST(Filters, WhatIsUnlikelyIsTakenLast) {
  const Recording recording = made_up_recording();
  EXPECT_GT(packed_among_first(recording, 0), 0);
  EXPECT_EQ(packed_among_first(recording, 0.02), 0);
}

TEST(Filters, WhatIsUnlikelyIsStillTaken) {
  const Recording recording = made_up_recording();
  const auto curve = curve_of(recording, {.strategy = Strategy::tree,
                                          .policy = std::make_shared<DoubtfulPolicy>(),
                                          .most = 10'000,
                                          .unlikely = 0.02});
  EXPECT_EQ(curve.sequence.size(), recording.verdicts.size());
}

TEST(Curves, TryWhatIsNearBehindTheFirstGuesses) {
  const Recording recording = made_up_recording();
  ReplaySetup setup{.strategy = Strategy::tree};
  // Two that no strategy guesses first.
  std::set<std::string> wanted;
  for (const std::string& text : curve_of(recording, setup).sequence | std::views::drop(20)) {
    const Judged& judged = recording.verdicts.at(text);
    if (!judged.accepted || judged.config.family() != "matmul_cpu" || wanted.size() == 2) continue;
    wanted.insert(text);
    setup.near.push_back(judged.config);
  }
  for (const Strategy strategy : {Strategy::tree, Strategy::branch, Strategy::linear,
                                  Strategy::evolution, Strategy::beam, Strategy::enumerate}) {
    setup.strategy = strategy;
    const auto near = curve_of(recording, setup);
    const size_t guesses = recording.space.families.size() + 1;
    // A queue may take the second before the first, where that is less likely to be refused.
    const std::set<std::string> then = {near.sequence.at(guesses), near.sequence.at(guesses + 1)};
    EXPECT_EQ(then, wanted);
    EXPECT_EQ(std::set<std::string>(near.sequence.begin(), near.sequence.end()).size(),
              near.sequence.size());
  }
}

// Rounds and chances are what the strategy and its policy say.
TEST(Proposals, KnowTheirRoundAndTheirChance) {
  const Recording recording = made_up_recording();
  const StrategyPtr strategy = make_strategy(
      Strategy::branch,
      {.space = &recording.space, .seed = 1, .policy = std::make_shared<DoubtfulPolicy>()});
  std::set<int> rounds;
  for (int i = 0; i < 60; ++i) {
    const auto next = strategy->ask();
    ASSERT_TRUE(next);
    strategy->tell(recording.verdicts.at(next->config.text()));
    rounds.insert(next->origins.round);
    EXPECT_EQ(next->origins.round == 0, !next->action);
    EXPECT_EQ(next->origins.chance > 0, next->action.has_value());
    EXPECT_LE(next->origins.chance, 1);
  }
  EXPECT_GT(rounds.size(), 2u);
  EXPECT_EQ(*rounds.rbegin(), static_cast<int>(rounds.size()) - 1);
}
}  // namespace
}  // namespace warploom::search
