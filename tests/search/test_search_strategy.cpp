// What is proposed, and in which order.
#include <gtest/gtest.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>
#include "../graph/builder.h"
#include "base/dtype.h"
#include "base/random.h"
#include "codegen/launch_list.h"
#include "fake_family.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "kernels/family.h"
#include "kernels/space_walk.h"
#include "search/search_space.h"
#include "search/strategy/ranked.h"
#include "search/strategy/strategy.h"
#include "search/task.h"
#include "target/capabilities.h"
#include "told.h"

namespace warploom::search {
namespace {
SearchSpace space_of(const graph::Graph& graph, Track track, const std::string& target) {
  return search_space_of({*graph::decompose(graph), track}, *target::capabilities_of(target));
}

graph::Graph matmul(Dtype dtype, int64_t size) {
  graph::Builder b("mm");
  const auto x = b.input("x", dtype, {size, size});
  const auto w = b.input("w", dtype, {size, size});
  b.output(b.add(graph::OpKind::MatMul, {x, w}));
  return *b.finish();
}

graph::Graph convolution() {
  graph::Builder b("conv");
  const auto x = b.input("x", Dtype::f32, {4, 32, 32, 32});
  const auto w = b.input("w", Dtype::f32, {32, 32, 3, 3});
  b.output(b.add(graph::OpKind::Conv, {x, w}, {{"pads", std::vector<int64_t>(4, 1)}}));
  return *b.finish();
}

std::vector<std::string> families_of(const StrategyPtr& strategy, size_t count) {
  std::vector<std::string> out;
  while (out.size() < count)
    out.push_back(next_of(strategy)->family());
  return out;
}

TEST(SearchStrategy, TheSameSeedProposesTheSame) {
  const FakeFamily family({"right", "slow", "wrong_tail"}, 60);
  const Task task = task_of(family);
  std::array<std::vector<std::string>, 2> runs;
  for (auto& run : runs) {
    const StrategyPtr strategy = strategy_of(task.space, Strategy::beam, 5);
    for (int i = 0; i < 50; ++i) {
      const auto next = next_of(strategy);
      run.push_back(next->text());
      learn(strategy, *next, 100.0 - i);
    }
  }
  EXPECT_EQ(runs[0], runs[1]);
  EXPECT_EQ(std::set(runs[0].begin(), runs[0].end()).size(), 50u);
}

TEST(SearchStrategy, EnumerationGoesThroughAllByGuess) {
  const FakeFamily family({"right", "slow"}, 3);
  const Task task = task_of(family);
  const StrategyPtr strategy = strategy_of(task.space, Strategy::enumerate, 1);
  std::vector<std::string> all;
  while (const auto next = next_of(strategy))
    all.push_back(next->text());
  ASSERT_EQ(all.size(), 6u);
  EXPECT_EQ(all[0], "fake body=0 variant=0");
  EXPECT_EQ(all[1], "fake body=1 variant=0");
}

TEST(SearchStrategy, BeamChangesOneFieldOfTheBest) {
  const FakeFamily family({"right", "slow", "zeros", "nan"}, 200);
  const Task task = task_of(family);
  const StrategyPtr strategy = strategy_of(task.space, Strategy::beam, 1);
  for (int i = 0; i < 8; ++i)
    next_of(strategy);
  learn(strategy, FakeConfig{.body = 1, .variant = 150}, 5);
  std::optional<Proposal> next;
  do
    next = strategy->ask();
  while (next && next->parents.empty());
  ASSERT_TRUE(next);
  EXPECT_EQ(next->parents, std::vector<std::string>{"fake body=1 variant=150"});
  ASSERT_TRUE(next->action);
  EXPECT_EQ(next->action->settings.size(), 1u);
  const auto changed = next->config.as<FakeConfig>();
  EXPECT_TRUE(changed.body == 1 || changed.variant == 150);
}

TEST(SearchStrategy, WhatSharesAValueWithRefusedOnesComesLater) {
  const FakeFamily family({"right", "slow"}, 400);
  const Task task = task_of(family);
  const auto first_right = [&](bool told) {  // bodies of kind 1 are refused
    const StrategyPtr strategy = strategy_of(task.space, Strategy::beam, 1);
    for (int body = 0; body < 2; ++body)
      for (int variant = 10 * body; variant < 10 * body + 10; ++variant)
        strategy->suggest(  // the last suggestion is the first proposal
            FakeConfig{.body = body, .variant = variant});
    for (int i = 0;; ++i) {
      const auto next = next_of(strategy);
      if (next->as<FakeConfig>().body == 0) return i;
      if (told) refuse(strategy, *next);
    }
  };
  EXPECT_EQ(first_right(false), 10);
  EXPECT_LE(first_right(true), 5);
}

// The first proposals behind those for breadth are near the best of what the model says of many
// random schedules.
TEST(SearchStrategy, BeamStartsFromWhatTheCostModelFindsBest) {
  SearchSpace space = space_of(matmul(Dtype::bf16, 2048), Track::bf16, "sm_90a");
  std::atomic<int> built = 0;
  space.predict = [&](const kernels::KernelConfig& schedule) {
    ++built;
    return kernels::predicted_us(space.region, schedule, space.capabilities);
  };
  const auto predicted = [&](const kernels::KernelConfig& s) {
    const auto list = kernels::build(space.region, s, space.capabilities);
    EXPECT_EQ(list.has_value() ? list->predicted_us : 0, space.predict(s).value_or(0)) << s.text();
    return list ? list->predicted_us : HUGE_VAL;
  };
  const StrategyPtr beam = strategy_of(space, Strategy::beam, 1);
  const StrategyPtr random = strategy_of(space, Strategy::random, 1);
  const int asked = built;
  for (size_t i = 0; i < space.families.size(); ++i)
    (void)next_of(beam);
  double best_of_random = HUGE_VAL;
  for (int i = 0; i < 60; ++i)
    best_of_random = std::min(best_of_random, predicted(*next_of(random)));
  EXPECT_LT(predicted(*next_of(beam)), best_of_random);
  EXPECT_LT(asked, 1500);
  RecordProperty("schedules_modelled", asked);
}

TEST(SearchStrategy, BreadthTakesTheFallbackAndThenOneOfEveryOtherFamily) {
  for (const std::string target : {"sm_80", "sm_90a"}) {
    const SearchSpace space = space_of(matmul(Dtype::f32, 512), Track::fp32, target);
    ASSERT_GE(space.families.size(), 2u);
    const StrategyPtr strategy = strategy_of(space, Strategy::automatic, 1);
    const auto first = families_of(strategy, space.families.size());
    EXPECT_EQ(first[0], fallback_of(space)->config.family());
    EXPECT_EQ(std::set(first.begin(), first.end()).size(), space.families.size()) << target;
  }
}

TEST(SearchStrategy, TheFallbackComputesWithTheOperandsThemselves) {
  const auto family = [](const graph::Graph& graph, Track track) {
    return fallback_of(space_of(graph, track, "sm_90a"))->config.family();
  };
  EXPECT_EQ(family(matmul(Dtype::f32, 1024), Track::fp32), "matmul_simt");
  EXPECT_EQ(family(convolution(), Track::fp32), "matmul_simt");
  EXPECT_EQ(family(matmul(Dtype::bf16, 1024), Track::bf16), "matmul_mma");
}

// An ordinary search begins with it, and may end with it where the time is short.
TEST(SearchStrategy, WherePredictionsOrderTheFallbackIsOneOfTheBestOfItsFamily) {
  const SearchSpace space = space_of(convolution(), Track::fp32, "sm_90a");
  const auto fallback = fallback_of(space);
  ASSERT_TRUE(fallback);
  const auto is_its = [&](const auto& one) { return one->name() == fallback->config.family(); };
  const auto family = std::ranges::find_if(space.families, is_its);
  const double us = *space.predict(fallback->config);
  const kernels::SpaceWalk walk(**family);
  Random random(7);
  int better = 0;
  for (int i = 0; i < 40; ++i)
    if (const auto other = walk.sample(random))
      better += space.predict(*other).value_or(HUGE_VAL) < us;
  EXPECT_LE(better, 6);
}

// The walk goes through a field's values before it changes the next field's, so the best guess may
// be the last config of a large space.
TEST(SearchStrategy, WhereGuessesOrderTheFallbackIsTheBestOfTheWholeSpace) {
  FakeFamily family(std::vector<std::string>(2, "right"), 5000);
  family.best_variant = 4999;
  const auto fallback = fallback_of(task_of(family).space);
  ASSERT_TRUE(fallback);
  EXPECT_EQ(fallback->config.as<FakeConfig>().variant, 4999);
}

TEST(SearchStrategy, AFamilyThatIsWrongComesAfterTheOthers) {
  const SearchSpace space = space_of(matmul(Dtype::f32, 512), Track::fp32, "sm_90a");
  const StrategyPtr strategy = strategy_of(space, Strategy::beam, 1);
  std::string wrong;
  for (size_t i = 0; i < space.families.size(); ++i) {
    const auto next = *next_of(strategy);
    if (i == 1) wrong = next.family();
    if (i == 1)
      refuse(strategy, next, true);
    else
      learn(strategy, next, 100);
  }
  for (const std::string& family : families_of(strategy, 30))
    EXPECT_NE(family, wrong);
}

TEST(SearchStrategy, AFamilyThatIsWrongIsStillThereWhereNoOtherIs) {
  const FakeFamily family({"right", "slow"}, 100);
  const Task task = task_of(family);
  const StrategyPtr strategy = strategy_of(task.space, Strategy::beam, 1);
  for (int i = 0; i < 20; ++i) {
    const auto next = next_of(strategy);
    ASSERT_TRUE(next) << i;
    refuse(strategy, *next, true);
  }
}

TEST(SearchStrategy, AFamilyWhoseConfigsAreRightAgainStepsForward) {
  const SearchSpace space = space_of(matmul(Dtype::f32, 512), Track::fp32, "sm_90a");
  const StrategyPtr strategy = strategy_of(space, Strategy::beam, 1);
  std::vector<kernels::KernelConfig> leads;
  for (size_t i = 0; i < space.families.size(); ++i)
    leads.push_back(*next_of(strategy));
  refuse(strategy, leads[1], true);
  learn(strategy, leads[1], 10);
  const auto next = families_of(strategy, 150);
  EXPECT_TRUE(std::ranges::count(next, leads[1].family()) > 0);
}
}  // namespace
}  // namespace warploom::search
