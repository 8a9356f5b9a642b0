// The learned policy: what it sees, what a walk is rewarded with, what training makes of outcomes.
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>
#include "base/casts.h"
#include "base/error.h"
#include "base/random.h"
#include "graph/track.h"
#include "recorded.h"
#include "search/action/action.h"
#include "search/action/actions_of.h"
#include "search/policy/compare.h"
#include "search/policy/features.h"
#include "search/policy/learned.h"
#include "search/policy/outcomes.h"
#include "search/policy/plan_facts.h"
#include "search/policy/recorded_tree.h"
#include "search/policy/replay.h"
#include "search/policy/state.h"
#include "search/policy/trainer.h"
#include "search/policy/uniform.h"
#include "search/policy/walk.h"
#include "search/policy/weights.h"
#include "search/search_space.h"

namespace warploom::search {
namespace {
double seen(const FeatureVector& features, Feature feature) {
  return features[as_size(feature)];
}

// A problem's tree with what it is of.
struct Recorded {
  Outcomes outcomes = made_up_outcomes();
  RecordedTree tree{outcomes.capabilities, outcomes.problems[0]};

  State state(int plan) const {
    const double us = tree.plan(plan).us;
    return {&tree.space(), &tree.facts(), tree.config(plan), us, us, {}};
  }

  // The first edge there of a field that is raised, or lowered; null where there is none.
  const RecordedEdge* edge(int plan, bool raises) const {
    for (const RecordedEdge& one : tree.edges(plan)) {
      const Setting& meant = one.action.settings[0];
      if ((meant.to > meant.from) == raises) return &one;
    }
    return nullptr;
  }

  // A plan from which fields can be raised and lowered.
  int middle() const {
    for (const int plan : tree.inner())
      if (edge(plan, true) && edge(plan, false)) return plan;
    return -1;
  }
};

TEST(PlanFacts, CountWhatTilesMove) {
  const SearchSpace space = search_space_of({transposed(256, 384), Track::fp32}, recorded_target());
  const auto& family = *space.families[0];
  Random random(1);
  const auto config = kernels::SpaceWalk(family).sample(random);
  const auto programs = family.programs(*config);
  ASSERT_TRUE(programs) << describe(programs.error());
  const PlanFacts facts = facts_of(*programs, space.capabilities);
  const double least = 2.0 * 256 * 384 * 4;
  EXPECT_GE(facts.moved_bytes, least);
  EXPECT_GE(facts.lane_work, 256 * 384);
  EXPECT_GE(facts.tasks, 1);
  EXPECT_EQ(facts.programs, 1);
}

TEST(Features, AreBoundedAndNamedOnce) {
  const Recorded recorded;
  for (const int plan : recorded.tree.inner())
    for (const RecordedEdge& edge : recorded.tree.edges(plan))
      for (const double one : edge.seen)
        EXPECT_LE(std::abs(one), 2);
  std::vector<std::string_view> names;
  for (const FeatureRow& row : kFeatureRows)
    names.push_back(row.name);
  std::ranges::sort(names);
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
}

TEST(Features, SayWhereAnActionGoes) {
  const Recorded recorded;
  const int plan = recorded.middle();
  ASSERT_GE(plan, 0);
  const auto& up = recorded.edge(plan, true)->seen;
  const auto& down = recorded.edge(plan, false)->seen;
  EXPECT_GT(seen(up, Feature::raise), 0);
  EXPECT_GT(seen(up, Feature::to), seen(up, Feature::from));
  EXPECT_LT(seen(down, Feature::raise), 0);
  EXPECT_EQ(seen(up, Feature::kind_tiling), 1);
}

TEST(Features, AnActionThatUndoesTheLastOneIsSeen) {
  const Recorded recorded;
  const int plan = recorded.middle();
  const RecordedEdge& up = *recorded.edge(plan, true);
  State state = recorded.state(plan);
  Action back = up.action;
  std::swap(back.settings[0].from, back.settings[0].to);
  state.history.push_back({up.action, true, 200, 100});
  FeatureVector again = {};
  Features::add_times(again, state, up.action);
  FeatureVector undone = {};
  Features::add_times(undone, state, back);
  EXPECT_EQ(seen(again, Feature::undoes_last), 0);
  EXPECT_EQ(seen(undone, Feature::undoes_last), 1);
  EXPECT_EQ(seen(again, Feature::same_field), 1);
  EXPECT_GT(seen(again, Feature::last_gain), 0);
  EXPECT_GT(seen(again, Feature::field_gain), 0);
  EXPECT_EQ(seen(undone, Feature::field_gain), 0);
}

TEST(Features, AreTheSameForALivePlanAsForARecordedOne) {
  const Recorded recorded;
  const int plan = recorded.middle();
  const RecordedEdge& edge = *recorded.edge(plan, true);
  Features features(recorded.tree.space());
  const State state = recorded.state(plan);
  FeatureVector wanted = edge.seen;
  Features::add_times(wanted, state, edge.action);
  EXPECT_EQ(features.of(state, edge.action, recorded.tree.config(edge.to)), wanted);
}

TEST(Walk, RewardsAreThoseOfMtmc) {
  EXPECT_DOUBLE_EQ(mtmc_reward({.code = "resource-limit"}, 10), -1);
  EXPECT_DOUBLE_EQ(mtmc_reward({.code = "candidate-wrong"}, 10), 0.1 - 0.5);
  EXPECT_DOUBLE_EQ(mtmc_reward({.us = 12}, 10), 0.1 + 0.5);
  EXPECT_DOUBLE_EQ(mtmc_reward({.us = 8}, 10), 0.1 + 0.5 + 1);
}

// Whatever way it goes: rewards less MTMC's add up to what the best plan of the walk gained.
TEST(Walk, SeeksTheBestPlanAndNotTheSumOfGains) {
  const Recorded recorded;
  Random random(4);
  for (const Mode mode : {Mode::linear, Mode::climbs}) {
    Walk walk(recorded.tree, recorded.middle(), mode);
    const double begin = walk.best_us();
    double gains = 0;
    for (int step = 0; step < 12; ++step) {
      const auto view = walk.look(100, random);
      if (view.edges.empty()) break;
      const RecordedEdge& edge = *view.edges[random.below(view.edges.size())];
      const double mtmc = mtmc_reward(recorded.tree.plan(edge.to), walk.state().us);
      gains += walk.take(edge) - 0.1 * std::pow(0.9, step) * mtmc;
    }
    EXPECT_NEAR(gains, std::log2(begin / walk.best_us()), 1e-9);
  }
}

TEST(Walk, ClimbingStaysAtTheFasterPlan) {
  const Recorded recorded;
  const int plan = recorded.middle();
  Walk climbing(recorded.tree, plan, Mode::climbs);
  Walk linear(recorded.tree, plan, Mode::linear);
  const auto slower = [&](const RecordedEdge& edge) {
    return recorded.tree.plan(edge.to).us > recorded.tree.plan(plan).us;
  };
  const auto edge = std::ranges::find_if(recorded.tree.edges(plan), slower);
  ASSERT_NE(edge, recorded.tree.edges(plan).end());
  climbing.take(*edge);
  linear.take(*edge);
  EXPECT_EQ(climbing.at(), plan);
  EXPECT_EQ(linear.at(), edge->to);
}

TEST(Walk, WhatWasSeenIsNotOfferedAgain) {
  const Recorded recorded;
  Random random(4);
  Walk walk(recorded.tree, recorded.middle(), Mode::climbs);
  const auto first = walk.look(1000, random);
  walk.take(*first.edges[0]);
  for (const RecordedEdge* edge : walk.look(1000, random).edges)
    EXPECT_NE(edge->to, first.edges[0]->to);
}

TrainOptions few_rounds(uint64_t seed) {
  TrainOptions out;
  out.seed = seed;
  out.imitation_epochs = 6;
  out.rounds = 4;
  return out;
}

std::string trained_text(const Outcomes& outcomes, uint64_t seed) {
  return weights_text({train(trees_of(outcomes, Use::train), few_rounds(seed)).network, {}});
}

TEST(Training, TheSeedDecidesEveryWeight) {
  const Outcomes outcomes = made_up_outcomes();
  const std::string once = trained_text(outcomes, 3);
  EXPECT_EQ(once, trained_text(outcomes, 3));
  EXPECT_NE(once, trained_text(outcomes, 4));
}

TEST(Training, ItsCourseHasAPointARound) {
  const Outcomes outcomes = made_up_outcomes();
  const Trained trained = train(trees_of(outcomes, Use::train), few_rounds(1));
  ASSERT_EQ(trained.curve.size(), 10);
  EXPECT_EQ(trained.curve[0].part, "imitation");
  EXPECT_EQ(trained.curve[9].part, "ppo");
  EXPECT_LT(trained.curve[5].loss, trained.curve[0].loss);
}

TEST(Training, EndsWithItsTime) {
  const Outcomes outcomes = made_up_outcomes();
  TrainOptions options = few_rounds(1);
  options.seconds = 0;
  EXPECT_TRUE(train(trees_of(outcomes, Use::train), options).curve.empty());
}

TEST(Training, WhatIsLearnedHoldsForAShapeThatWasNotSeen) {
  const Outcomes outcomes = made_up_outcomes();
  TrainOptions options = few_rounds(1);
  options.imitation_epochs = 80;
  const auto trained = train(trees_of(outcomes, Use::train), options);
  const auto rows =
      compared(trees_of(outcomes, Use::hold_out),
               {{"uniform", std::make_shared<UniformPolicy>()},
                {"learned", std::make_shared<LearnedPolicy>(Weights{trained.network, {}})}},
               20);
  const auto summary = summed_up(rows);
  ASSERT_EQ(summary.size(), 2);
  EXPECT_LT(summary[1].to_095, 0.7 * summary[0].to_095);
}

TEST(LearnedPolicy, WeighsEveryActionAndTellsOdds) {
  const Recorded recorded;
  LearnedPolicy policy(*shipped_weights());
  const int plan = recorded.middle();
  const State state = recorded.state(plan);
  const auto actions = ActionSpace(recorded.tree.space()).at(state.config).legal;
  const auto weights = policy.weights(state, actions);
  ASSERT_EQ(weights.size(), actions.size());
  double sum = 0;
  for (const double one : weights)
    sum += one;
  EXPECT_NEAR(sum, 1, 1e-9);
  EXPECT_EQ(policy.weights(state, actions), weights);
  const auto promise = policy.promise(state, *carry_out(*state.space, actions[0], state.config));
  ASSERT_TRUE(promise);
  EXPECT_GT(*promise, 0);
  EXPECT_LT(*promise, 1);
  EXPECT_FALSE(policy.promise(state, state.config));
}

TEST(LearnedPolicy, AnIdeaThatNoRuleCarriesOutHasNoWeight) {
  const Recorded recorded;
  LearnedPolicy policy(*shipped_weights());
  const int plan = recorded.middle();
  const std::vector<Action> actions = {recorded.tree.edges(plan)[0].action,
                                       idea_of("keep the tile in shared memory")};
  const auto weights = policy.weights(recorded.state(plan), actions);
  EXPECT_EQ(weights[1], 0);
  EXPECT_EQ(weights[0], 1);
}

TEST(Replay, TheSameSeedTriesTheSamePlans) {
  const Recorded recorded;
  UniformPolicy policy;
  const auto once = replayed(recorded.tree, policy, {.seed = 7});
  EXPECT_EQ(once.best_at, replayed(recorded.tree, policy, {.seed = 7}).best_at);
  EXPECT_NE(once.best_at, replayed(recorded.tree, policy, {.seed = 8}).best_at);
  EXPECT_GE(once.best_at.back(), 0.98);
  EXPECT_LE(once.to_095, once.to_098);
}
}  // namespace
}  // namespace warploom::search
