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
#include "archive/archive.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/file.h"
#include "graph/graph.h"
#include "plan/boundaries.h"
#include "plan/boundary_change.h"
#include "plan/fusion.h"
#include "plan/region.h"
#include "search/action/boundary_action.h"
#include "search/boundary_archive.h"
#include "search/boundary_search.h"
#include "search/budget.h"
#include "search/options.h"
#include "target/capabilities.h"

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
    out.tried.push_back(to_text(trial.action.changes));
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

TEST(BoundaryAction, SaysWhatTravelsAndWhatThatIsExpectedToGain) {
  const Graph graph = blocks();
  plan::Boundaries boundaries(graph, four_at_most);
  for (const plan::BoundaryOption& option : boundaries.options({})) {
    const BoundaryAction action = boundary_action_of(option);
    const auto json = to_json(action);
    EXPECT_EQ(json["kind"], "fusion");
    EXPECT_EQ(json["code_region"], "region boundary");
    EXPECT_EQ(json["settings"].size(), option.changes.size());
    EXPECT_EQ(*plan::boundaries_from_json(json["changes"]), option.changes);
    const bool is_cut = action.kind == BoundaryKind::cut_region;
    EXPECT_EQ(json["name"], is_cut ? "cut_region" : "join_regions");
    EXPECT_NE(action.sentence.find(is_cut ? "more of the machine has work"
                                          : "less goes to and from memory"),
              std::string::npos)
        << action.sentence;
    EXPECT_EQ(action.sentence.find('{'), std::string::npos) << action.sentence;
  }
}

TEST(BoundaryAction, ByNameIsMadeInAllEqualPlacesOrRefusedWithTheRule) {
  const Graph graph = blocks();
  plan::Boundaries boundaries(graph, four_at_most);
  const std::string sum = graph.tensor(graph.nodes[1].outputs[0]).name;
  const auto cut = named_boundary_action(boundaries, {}, "cut_region " + sum);
  ASSERT_TRUE(cut) << describe(cut.error());
  EXPECT_EQ(cut->changes.size(), 2u);
  const std::string last = graph.tensor(graph.outputs[0]).name;
  const auto refused = named_boundary_action(boundaries, {}, "cut_region " + last);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kScheduleIllegal);
  EXPECT_NE(refused.error().expected.find("made_inside"), std::string::npos);
  EXPECT_EQ(named_boundary_action(boundaries, {}, "cut_region none").error().code,
            ErrorCode::kScheduleIllegal);
  EXPECT_EQ(named_boundary_action(boundaries, {}, "split x").error().code, ErrorCode::kPlanInvalid);
  EXPECT_TRUE(names_boundary("join_regions a + b"));
  EXPECT_FALSE(names_boundary("tile_x=4"));
}

class BoundaryArchives : public testing::Test {
 protected:
  Options options(double seconds = 10) const {
    Options out;
    out.archive = (folder.path() / "a.sqlite").string();
    out.budget_seconds = seconds;
    return out;
  }

  // A search that ends with these changes, or is killed before it says so.
  void searched(const plan::BoundaryChanges& changes, const Options& with, bool is_killed = false) {
    auto archive = BoundaryArchive::open(graph, with, capabilities);
    ASSERT_TRUE(archive) << describe(archive.error());
    ASSERT_TRUE(archive->begin());
    ASSERT_TRUE(archive->record({}, 100, false));
    ASSERT_TRUE(archive->record(changes, 90, true));
    if (!is_killed) archive->finish("done", 1, changes, 5);
  }

  ScratchFolder folder{"boundaries"};
  const Graph graph = blocks();
  const target::Capabilities capabilities = *target::capabilities_of("cpu");
  const plan::BoundaryChanges cut = {{BoundaryKind::cut_region, "t"}};
};

TEST_F(BoundaryArchives, ASearchBeginsWhereTheLastOneEnded) {
  const Options with = options();
  EXPECT_TRUE(BoundaryArchive::open(graph, with, capabilities)->start().empty());
  searched(cut, with);
  const auto next = BoundaryArchive::open(graph, with, capabilities);
  EXPECT_EQ(next->start(), cut);
  EXPECT_TRUE(next->is_finished());
}

TEST_F(BoundaryArchives, OneThatWasKilledBeginsWhereItHadBegun) {
  const Options with = options();
  searched(cut, with, true);
  const auto next = BoundaryArchive::open(graph, with, capabilities);
  EXPECT_TRUE(next->start().empty());
  EXPECT_FALSE(next->is_finished());
}

TEST_F(BoundaryArchives, ALargerBudgetAnotherSeedOrCandidatesSearchOn) {
  const Options with = options();
  searched(cut, with);
  const Options larger = options(20);
  EXPECT_FALSE(BoundaryArchive::open(graph, larger, capabilities)->is_finished());
  Options other = options();
  other.seed = 2;
  EXPECT_FALSE(BoundaryArchive::open(graph, other, capabilities)->is_finished());
  other = options();
  other.max_candidates = 3;
  EXPECT_FALSE(BoundaryArchive::open(graph, other, capabilities)->is_finished());
  other = options();
  other.resume = false;
  EXPECT_TRUE(BoundaryArchive::open(graph, other, capabilities)->start().empty());
}

TEST_F(BoundaryArchives, AStepsLineageStaysWhenItsPlanIsJudgedWhole) {
  const Options with = options();
  plan::Boundaries boundaries(graph, four_at_most);
  const std::string sum = graph.tensor(graph.nodes[1].outputs[0]).name;
  BoundarySearch::Trial trial;
  trial.action = *named_boundary_action(boundaries, {}, "cut_region " + sum);
  trial.partition = *boundaries.under(trial.action.changes);
  std::string key;
  {
    auto archive = BoundaryArchive::open(graph, with, capabilities);
    ASSERT_TRUE(archive->begin());
    ASSERT_TRUE(archive->record(trial, {}, 90));
    ASSERT_TRUE(archive->record(trial.partition.changes, 80, true));
    key = archive->key();
  }
  auto from = archive::Archive::open(with.archive);
  const auto rows = from->candidates(key);
  ASSERT_EQ(rows->size(), 1u);
  const archive::Candidate& row = rows->front();
  EXPECT_EQ(row.schedule, schedule_of(trial.partition.changes));
  EXPECT_EQ(*changes_of(row.schedule), trial.partition.changes);
  EXPECT_EQ(row.parents, std::vector<std::string>{"boundaries: as fused"});
  EXPECT_EQ(row.action["sentence"], trial.action.sentence);
  EXPECT_EQ(row.stage, archive::Stage::promoted);
  EXPECT_EQ(row.median_us, 80);
}
}  // namespace
}  // namespace warploom::search
