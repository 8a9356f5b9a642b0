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
#include "codegen/launch_list.h"
#include "fake_family.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "kernels/family.h"
#include "search/search_space.h"
#include "search/search_strategy.h"
#include "search/task.h"
#include "target/capabilities.h"

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

std::vector<std::string> families_of(SearchStrategy& strategy, size_t count) {
  std::vector<std::string> out;
  while (out.size() < count)
    out.push_back(strategy.next()->family());
  return out;
}

TEST(SearchStrategy, TheSameSeedProposesTheSame) {
  const FakeFamily family({"right", "slow", "wrong_tail"}, 60);
  const Task task = task_of(family);
  std::array<std::vector<std::string>, 2> runs;
  for (auto& run : runs) {
    SearchStrategy strategy(task.space, Strategy::beam, 5);
    for (int i = 0; i < 50; ++i) {
      const auto next = strategy.next();
      run.push_back(next->text());
      strategy.learn(*next, 100.0 - i);
    }
  }
  EXPECT_EQ(runs[0], runs[1]);
  EXPECT_EQ(std::set(runs[0].begin(), runs[0].end()).size(), 50u);
}

TEST(SearchStrategy, EnumerationGoesThroughAllByGuess) {
  const FakeFamily family({"right", "slow"}, 3);
  const Task task = task_of(family);
  SearchStrategy strategy(task.space, Strategy::enumerate, 1);
  std::vector<std::string> all;
  while (const auto next = strategy.next())
    all.push_back(next->text());
  ASSERT_EQ(all.size(), 6u);
  EXPECT_EQ(all[0], "fake body=0 variant=0");
  EXPECT_EQ(all[1], "fake body=1 variant=0");
}

TEST(SearchStrategy, BeamChangesOneFieldOfTheBest) {
  const FakeFamily family({"right", "slow", "zeros", "nan"}, 200);
  const Task task = task_of(family);
  SearchStrategy strategy(task.space, Strategy::beam, 1);
  for (int i = 0; i < 8; ++i)
    strategy.next();
  strategy.learn(FakeConfig{.body = 1, .variant = 150}, 5);
  std::optional<kernels::KernelConfig> next;
  do
    next = strategy.next();
  while (next && strategy.parents_of(next->text()).empty());
  ASSERT_TRUE(next);
  EXPECT_EQ(strategy.parents_of(next->text()), std::vector<std::string>{"fake body=1 variant=150"});
  EXPECT_TRUE(next->as<FakeConfig>().body == 1 || next->as<FakeConfig>().variant == 150);
}

TEST(SearchStrategy, WhatSharesAValueWithRefusedOnesComesLater) {
  const FakeFamily family({"right", "slow"}, 400);
  const Task task = task_of(family);
  const auto first_right = [&](bool told) {  // bodies of kind 1 are refused
    SearchStrategy strategy(task.space, Strategy::beam, 1);
    for (int body = 0; body < 2; ++body)
      for (int variant = 10 * body; variant < 10 * body + 10; ++variant)
        strategy.suggest(  // the last suggestion is the first proposal
            FakeConfig{.body = body, .variant = variant});
    for (int i = 0;; ++i) {
      const auto next = strategy.next();
      if (next->as<FakeConfig>().body == 0) return i;
      if (told) strategy.refuse(*next);
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
  SearchStrategy beam(space, Strategy::beam, 1);
  SearchStrategy random(space, Strategy::random, 1);
  const int asked = built;
  for (size_t i = 0; i < space.families.size(); ++i)
    (void)beam.next();
  double best_of_random = HUGE_VAL;
  for (int i = 0; i < 60; ++i)
    best_of_random = std::min(best_of_random, predicted(*random.next()));
  EXPECT_LT(predicted(*beam.next()), best_of_random);
  EXPECT_LT(asked, 1500);
  RecordProperty("schedules_modelled", asked);
}

TEST(SearchStrategy, BreadthTakesTheFallbackAndThenOneOfEveryOtherFamily) {
  for (const std::string target : {"sm_80", "sm_90a"}) {
    const SearchSpace space = space_of(matmul(Dtype::f32, 512), Track::fp32, target);
    ASSERT_GE(space.families.size(), 2u);
    SearchStrategy strategy(space, Strategy::automatic, 1);
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
  SearchStrategy strategy(space, Strategy::beam, 1);
  std::string wrong;
  for (size_t i = 0; i < space.families.size(); ++i) {
    const auto next = *strategy.next();
    if (i == 1) wrong = next.family();
    if (i == 1)
      strategy.refuse(next, true);
    else
      strategy.learn(next, 100);
  }
  for (const std::string& family : families_of(strategy, 30))
    EXPECT_NE(family, wrong);
}

TEST(SearchStrategy, AFamilyThatIsWrongIsStillThereWhereNoOtherIs) {
  const FakeFamily family({"right", "slow"}, 100);
  const Task task = task_of(family);
  SearchStrategy strategy(task.space, Strategy::beam, 1);
  for (int i = 0; i < 20; ++i) {
    const auto next = strategy.next();
    ASSERT_TRUE(next) << i;
    strategy.refuse(*next, true);
  }
}

TEST(SearchStrategy, AFamilyWhoseConfigsAreRightAgainStepsForward) {
  const SearchSpace space = space_of(matmul(Dtype::f32, 512), Track::fp32, "sm_90a");
  SearchStrategy strategy(space, Strategy::beam, 1);
  std::vector<kernels::KernelConfig> leads;
  for (size_t i = 0; i < space.families.size(); ++i)
    leads.push_back(*strategy.next());
  strategy.refuse(leads[1], true);
  strategy.learn(leads[1], 10);
  const auto next = families_of(strategy, 150);
  EXPECT_TRUE(std::ranges::count(next, leads[1].family()) > 0);
}
}  // namespace
}  // namespace warploom::search
