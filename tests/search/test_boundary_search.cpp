// Which partitions of a network are tried, by recorded times: the same ones in the same order, the
// best is kept, and no trial is begun that the budget has no room for.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>
#include "../graph/builder.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/rows.h"
#include "graph/graph.h"
#include "plan/boundaries.h"
#include "plan/boundary_change.h"
#include "plan/fusion.h"
#include "plan/region.h"
#include "search/action/action.h"
#include "search/action/plan_actions.h"
#include "search/boundary_search.h"
#include "search/budget.h"
#include "search/plan_choice.h"

namespace warploom::search {
namespace {
using graph::Graph;
using graph::OpKind;
using plan::BoundaryKind;
using plan::Partition;
using plan::Region;

// exp of two blocks tanh(sum of rows of |x|) + x, in which fusion makes regions of up to four
// operators.
Graph blocks() {
  graph::Builder b("blocks");
  const std::map<std::string, graph::Attribute> rows = {{"axes", std::vector<int64_t>{1}},
                                                        {"keepdims", int64_t{1}}};
  graph::TensorId x = b.input("x", Dtype::f32, {64, 32});
  for (int i = 0; i < 2; ++i) {
    const graph::TensorId sum = b.add(OpKind::ReduceSum, {b.add(OpKind::Abs, {x})}, rows);
    x = b.add(OpKind::Add, {b.add(OpKind::Tanh, {sum}), x});
  }
  b.output(b.add(OpKind::Exp, {x}));
  return *b.finish();
}

std::optional<int> four_at_most(const Graph& region) {
  return region.nodes.size() <= 4 ? std::optional(0) : std::nullopt;
}

// What regions take, by the operators' names: as fused, a block takes 100 us, and the exponential
// 24; cut behind its sum a block takes what `halves` says, and cut anywhere else more.
double recorded_us(const Graph& region, double halves) {
  const std::string& name = region.name;
  if (region.nodes.size() == 4) return 100;
  if (name == "Exp") return 24;
  if (name == "Abs+ReduceSum" || name == "Tanh+Add") return halves / 2;
  return 120;
}

struct Told {
  std::vector<std::string> tried;
  std::string best;
  TrialsEnd end = TrialsEnd::nothing_left;
  double spent = 0;
};

// The whole search by recorded times, where each trial takes so many seconds of a clock that only
// they move.
Told searched(double halves, double budget_seconds, double each = 1) {
  const Graph graph = blocks();
  plan::Boundaries boundaries(graph, four_at_most);
  double now = 0;
  const Budget budget(budget_seconds, [&now] { return now; });
  BoundarySearch search(
      boundaries, *boundaries.under({}),
      {.best_us = [halves](const Region& one) { return recorded_us(one.graph, halves); },
       .bound_us = [](const Graph& one) { return one.nodes.size() == 4 ? 20.0 : 12.0; }});
  Told out;
  const auto judge = [&](const BoundarySearch::Trial& trial, const Budget& part) -> Result<double> {
    EXPECT_GE(part.left(), each);
    EXPECT_LE(part.left(), budget.left());
    now += each;
    out.tried.push_back(listed(trial.action.plan_steps, {}, "; "));
    return search.us_of(trial.partition);
  };
  const auto end = try_boundaries(
      search, budget,
      {.least_seconds = [each](const Partition&) { return each; },
       .judge = judge,
       .note = [](const BoundarySearch::Trial&, double, bool) -> Status { return ok(); },
       .is_ended = [] { return false; }});
  EXPECT_TRUE(end);
  out.end = *end;
  out.best = to_text(search.best().changes);
  out.spent = now;
  EXPECT_EQ(search.tried(), static_cast<int>(out.tried.size()));
  return out;
}

TEST(BoundarySearch, TakesTheCutThatGainsInAllEqualBlocks) {
  const Told told = searched(60, 100);
  EXPECT_EQ(told.end, TrialsEnd::nothing_left);
  EXPECT_NE(told.best.find("; "), std::string::npos) << told.best;  // both blocks
  EXPECT_EQ(told.best.substr(0, 10), "cut_region");
}

TEST(BoundarySearch, WhatGainsNothingChangesNothing) {
  const Told told = searched(130, 100);
  EXPECT_EQ(told.best, "");
  EXPECT_GT(told.tried.size(), 0u);
}

TEST(BoundarySearch, TheSameTimesGiveTheSameSequence) {
  const Told once = searched(60, 100);
  const Told again = searched(60, 100);
  EXPECT_EQ(once.tried, again.tried);
  EXPECT_EQ(once.best, again.best);
}

TEST(BoundarySearch, NoPartitionIsTriedTwice) {
  const Told told = searched(60, 100);
  const std::set<std::string> different(told.tried.begin(), told.tried.end());
  EXPECT_EQ(different.size(), told.tried.size());
}

TEST(BoundarySearch, NoTrialIsBegunThatTheBudgetHasNoRoomFor) {
  for (const double seconds : {0.5, 1.5, 2.5}) {
    const Told told = searched(130, seconds);
    EXPECT_LE(told.spent, seconds);
    EXPECT_EQ(told.end, TrialsEnd::time_up);
    EXPECT_EQ(told.tried.size(), static_cast<size_t>(seconds)) << seconds;
  }
}

TEST(BoundarySearch, WhereATimeIsUnknownNothingIsTried) {
  const Graph graph = blocks();
  plan::Boundaries boundaries(graph, four_at_most);
  BoundarySearch search(
      boundaries, *boundaries.under({}),
      {.best_us = [](const Region&) { return 0.0; }, .bound_us = [](const Graph&) { return 1.0; }});
  EXPECT_FALSE(search.ask());
}

TEST(BoundarySearch, RegionsAtTheirBoundAreLeft) {
  const Graph graph = blocks();
  plan::Boundaries boundaries(graph, four_at_most);
  BoundarySearch search(
      boundaries, *boundaries.under({}),
      {.best_us = [](const Region&) { return 20.0; },
       .bound_us = [](const Graph& one) { return one.nodes.size() == 4 ? 20.0 : 12.0; }});
  EXPECT_FALSE(search.ask());
}

// A block alone, of which nothing tells whether being one region holds it back, but a library that
// needs so long for the same.
std::optional<BoundarySearch::Trial> tried_of_one_region(double reference_us) {
  graph::Builder b("block");
  const graph::TensorId x = b.input("x", Dtype::f32, {64, 32});
  const graph::TensorId sum = b.add(OpKind::ReduceSum, {b.add(OpKind::Abs, {x})},
                                    {{"axes", std::vector<int64_t>{1}}, {"keepdims", int64_t{1}}});
  b.output(b.add(OpKind::Add, {b.add(OpKind::Tanh, {sum}), x}));
  const Graph graph = *b.finish();
  plan::Boundaries boundaries(graph, four_at_most);
  BoundarySearch search(
      boundaries, *boundaries.under({}),
      {.best_us = [](const Region&) { return 100.0; },
       .bound_us = [](const Graph& one) { return one.nodes.size() == 4 ? 20.0 : 12.0; },
       .reference_us = [reference_us](const Region&) { return reference_us; }});
  EXPECT_EQ(search.may_gain(), reference_us == 40);
  return search.ask();
}

TEST(BoundarySearch, ARegionThatALibraryComputesFasterIsCut) {
  EXPECT_TRUE(tried_of_one_region(40));
  EXPECT_FALSE(tried_of_one_region(0));  // none is known
  EXPECT_FALSE(tried_of_one_region(100));
}

TEST(BoundaryActions, SayWhatTravelsAndWhatThatIsExpectedToGain) {
  const Graph graph = blocks();
  plan::Boundaries boundaries(graph, four_at_most);
  for (const plan::BoundaryOption& option : boundaries.options({})) {
    const Action action = action_of(option);
    EXPECT_EQ(action.kind, ActionKind::fusion);
    EXPECT_EQ(action.code_region, "region boundary");
    EXPECT_EQ(carry_out(action, {})->boundaries, option.changes);
    const bool is_cut = option.changes[0].kind == BoundaryKind::cut_region;
    EXPECT_EQ(action.eases, is_cut ? Bottleneck::parallelism : Bottleneck::memory);
    EXPECT_NE(action.sentence.find(is_cut ? "more of the machine has work"
                                          : "less goes to and from memory"),
              std::string::npos)
        << action.sentence;
    EXPECT_EQ(action.sentence.find('{'), std::string::npos) << action.sentence;
  }
}

TEST(BoundaryActions, AreLegalOrRefusedWithTheirRule) {
  const Graph graph = blocks();
  plan::Boundaries boundaries(graph, four_at_most);
  const PlanActions here = boundary_actions(boundaries, {});
  EXPECT_FALSE(here.legal.empty());
  ASSERT_FALSE(here.refused.empty());
  for (const Action& action : here.legal)
    EXPECT_TRUE(boundaries.under(carry_out(action, {})->boundaries)) << action.sentence;
  for (const RefusedPlanAction& one : here.refused) {
    EXPECT_FALSE(boundaries.under(carry_out(one.action, {})->boundaries)) << one.action.sentence;
    ASSERT_EQ(one.why.size(), 1u);
    EXPECT_NE(one.why[0].expected, "");
  }
}

TEST(BoundaryActions, ByNameAreMadeInAllEqualPlacesOrRefusedWithTheRule) {
  const Graph graph = blocks();
  plan::Boundaries boundaries(graph, four_at_most);
  const std::string sum = graph.tensor(graph.nodes[1].outputs[0]).name;
  const auto cut = named_boundary_action(boundaries, {}, "cut_region " + sum);
  ASSERT_TRUE(cut) << describe(cut.error());
  EXPECT_EQ(cut->plan_steps.size(), 2u);
  const std::string last = graph.tensor(graph.outputs[0]).name;
  const auto refused = named_boundary_action(boundaries, {}, "cut_region " + last);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kScheduleIllegal);
  EXPECT_NE(refused.error().expected.find("made_inside"), std::string::npos);
  EXPECT_EQ(named_boundary_action(boundaries, {}, "cut_region none").error().code,
            ErrorCode::kScheduleIllegal);
  EXPECT_EQ(named_boundary_action(boundaries, {}, "split x").error().code, ErrorCode::kPlanInvalid);
  const std::string two = "cut_region " + sum + "; cut_region " + sum;
  EXPECT_EQ(named_boundary_action(boundaries, {}, two).error().code, ErrorCode::kPlanInvalid);
}
}  // namespace
}  // namespace warploom::search
