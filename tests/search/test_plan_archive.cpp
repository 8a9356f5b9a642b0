// What the archive keeps of whole plans: choices with their lineage, where the next search begins,
// and what programs before this one recorded.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "../graph/builder.h"
#include "archive/archive.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/file.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "plan/boundary_change.h"
#include "search/action/action.h"
#include "search/action/plan_actions.h"
#include "search/lineage.h"
#include "search/options.h"
#include "search/outcome.h"
#include "search/plan_archive.h"
#include "search/plan_choice.h"
#include "search/search_space.h"
#include "target/capabilities.h"

namespace warploom::search {
namespace {
using plan::BoundaryChanges;
using plan::BoundaryKind;

graph::Graph product() {
  graph::Builder b("product");
  const auto x = b.input("x", Dtype::f32, {8, 8});
  b.output(b.add(graph::OpKind::MatMul, {x, b.input("w", Dtype::f32, {8, 8})}));
  return *b.finish();
}

Action step(ActionKind kind, const std::string& text) {
  return {.kind = kind, .sentence = "a sentence", .plan_steps = {text}};
}

class PlanArchives : public testing::Test {
 protected:
  Options options(double seconds = 10) const {
    Options out;
    out.archive = (folder.path() / "a.sqlite").string();
    out.budget_seconds = seconds;
    return out;
  }

  Options rewritten() const {
    Options out = options();
    out.choice = *choice_from_text("sum_before y");
    return out;
  }

  PlanArchive opened(const Options& with) const {
    auto out = PlanArchive::open(graph, with, capabilities);
    EXPECT_TRUE(out) << describe(out.error());
    EXPECT_TRUE(out->find_start(graph));
    return *std::move(out);
  }

  // A search that ends with these boundaries, or is killed before it says so.
  void searched(const BoundaryChanges& boundaries, const Options& with, bool is_killed = false) {
    PlanArchive archive = opened(with);
    ASSERT_TRUE(archive.begin());
    ASSERT_TRUE(archive.record({}, 100, false));
    ASSERT_TRUE(archive.record(boundaries, 90, true));
    if (!is_killed) archive.finish("done", 1, boundaries, 5);
  }

  archive::Archive file() const { return *archive::Archive::open(options().archive); }

  std::vector<archive::Candidate> rows() const {
    archive::Archive from = file();
    const auto problems = *from.problems();
    EXPECT_LE(problems.size(), 1u);
    if (problems.empty()) return {};
    return *from.candidates(problems.at(0).key);
  }

  // As programs before this one kept what a search of boundaries ended with.
  void add_older(const std::string& best, const std::string& status = "done") const {
    archive::Archive into = file();
    const std::string key(32, 'b');
    archive::Problem problem{key, graph.name, std::string(name_of(Track::fp32)), capabilities.arch};
    problem.device = "a device";
    problem.text = graph::to_text(graph);
    ASSERT_TRUE(into.add_problem(problem));
    archive::Candidate row{.problem = key, .schedule = best};
    row.fields = nlohmann::json::object();
    row.stage = archive::Stage::promoted;
    row.median_us = 80;
    ASSERT_TRUE(into.record(row));
    archive::Run run{.problem = key, .status = status, .best = best};
    const auto id = into.begin_run(run);
    ASSERT_TRUE(into.finish_run(*id, run));
  }

  std::optional<KnownPlan> known() const {
    archive::Archive from = file();
    return *known_plan(from, graph, Track::fp32, capabilities.arch);
  }

  std::optional<KnownPlan> older() const {
    archive::Archive from = file();
    return *older_partition(from, graph, Track::fp32, capabilities.arch);
  }

  // An outcome of a plan, judged whole.
  static Outcome outcome(const PlanChoice& of, double us, bool is_proven = true) {
    Outcome out;
    out.plan.rewrites = of.rewrites;
    out.plan.partition.changes = of.boundaries;
    out.verdict.median_us = us;
    out.proven = is_proven;
    return out;
  }

  ScratchFolder folder{"plans"};
  const graph::Graph graph = product();
  const target::Capabilities capabilities = *target::capabilities_of("cpu");
  const BoundaryChanges cut = {{BoundaryKind::cut_region, "t"}};
  const BoundaryChanges twice = {{BoundaryKind::cut_region, "t"}, {BoundaryKind::cut_region, "u"}};
};

TEST_F(PlanArchives, ASearchOfBoundariesBeginsWhereTheLastOneEnded) {
  const Options with = options();
  EXPECT_TRUE(opened(with).start().is_as_given());
  searched(cut, with);
  const PlanArchive next = opened(with);
  EXPECT_EQ(next.start().boundaries, cut);
  EXPECT_TRUE(next.is_finished());
}

TEST_F(PlanArchives, OneThatWasKilledBeginsWhereItHadBegun) {
  const Options with = options();
  searched(cut, with);
  searched(twice, with, true);
  const PlanArchive next = opened(options(20));
  EXPECT_EQ(next.start().boundaries, cut);
  EXPECT_FALSE(next.is_finished());
}

TEST_F(PlanArchives, ASearchGoesOnWithWhatItsOwnSeedWasKilledIn) {
  Options other = options();
  other.seed = 2;
  searched(cut, options());
  PlanArchive killed = opened(other);
  searched(twice, options());
  ASSERT_TRUE(killed.begin());
  EXPECT_EQ(opened(other).start().boundaries, cut);
  EXPECT_EQ(opened(options(20)).start().boundaries, twice);
}

TEST_F(PlanArchives, ALargerBudgetAnotherSeedOrCandidatesSearchOn) {
  const Options with = options();
  searched(cut, with);
  EXPECT_FALSE(opened(options(20)).is_finished());
  Options other = options();
  other.seed = 2;
  EXPECT_FALSE(opened(other).is_finished());
  other = options();
  other.max_candidates = 3;
  EXPECT_FALSE(opened(other).is_finished());
  other = options();
  other.force_search = true;
  EXPECT_FALSE(opened(other).is_finished());
  other = options();
  other.resume = false;
  const PlanArchive anew = opened(other);
  EXPECT_TRUE(anew.start().is_as_given());
}

TEST_F(PlanArchives, OtherRewritesHaveBoundariesOfTheirOwn) {
  const Options given = options();
  const Options other = rewritten();
  searched(cut, given);
  const PlanArchive first = opened(other);
  EXPECT_TRUE(first.start().boundaries.empty());
  EXPECT_FALSE(first.is_finished());
  searched(twice, other);
  EXPECT_EQ(opened(other).start().text(), "sum_before y; cut_region t; cut_region u");
  EXPECT_EQ(known()->schedule, "sum_before y; cut_region t; cut_region u");
  EXPECT_EQ(opened(given).start().text(), "cut_region t");
}

TEST_F(PlanArchives, ASearchOfAFewCandidatesFinishesNothing) {
  Options few = options();
  few.max_candidates = 3;
  searched(cut, few);
  EXPECT_FALSE(opened(options()).is_finished());
}

TEST_F(PlanArchives, ARegionThatIsNamedLikeAPlanIsNone) {
  archive::Problem problem{std::string(32, 'a'), "plans of a house"};
  EXPECT_TRUE(is_of_plans(problem));
  problem.features = {{"flops", 1}};
  EXPECT_FALSE(is_of_plans(problem));
}

TEST_F(PlanArchives, AStepsLineageStaysWhenItsPlanIsJudgedWhole) {
  const Options with = rewritten();
  PlanArchive archive = opened(with);
  ASSERT_TRUE(archive.begin());
  const Action rewrite = step(ActionKind::rewrite, "sum_before y");
  const Action cutting = step(ActionKind::fusion, "cut_region t");
  ASSERT_TRUE(archive.record({}, 100, false));
  ASSERT_TRUE(archive.record_trial(cut, cutting, {}, 90));
  ASSERT_TRUE(archive.record(cut, 80, true));
  ASSERT_TRUE(archive.record(*with.choice, rewrite, 5, outcome(archive.start(), 95)));
  const auto all = rows();
  const Lineage steps = lineage_of(all, "sum_before y; cut_region t");
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].schedule, "sum_before y");
  EXPECT_EQ(steps[0].parents, std::vector<std::string>{"as given"});
  EXPECT_EQ(steps[0].median_us, 95);
  EXPECT_EQ(steps[1].stage, archive::Stage::promoted);
  EXPECT_EQ(steps[1].median_us, 80);
  EXPECT_EQ(steps[1].proposed["round"], 1);
  const auto space = search_space_of({graph, Track::fp32}, capabilities);
  PlanChoice choice;
  for (const archive::Candidate& one : steps)
    choice = *carry_out(*action_from_json(one.action, space), choice);
  EXPECT_EQ(choice.text(), steps[1].schedule);
}

TEST_F(PlanArchives, TheTimeOfAPlanIsThatOfTheBoundariesItHas) {
  const Options with = rewritten();
  PlanArchive archive = opened(with);
  const PlanChoice made{with.choice->rewrites, cut};
  const Action rewrite = step(ActionKind::rewrite, "sum_before y");
  ASSERT_TRUE(archive.record({}, 100, false));
  ASSERT_TRUE(archive.record(*with.choice, rewrite, 5, outcome(made, 80)));
  const auto all = rows();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].schedule, "sum_before y");
  EXPECT_EQ(all[0].median_us, 100);
  EXPECT_EQ(all[0].action["plan_steps"], nlohmann::json{"sum_before y"});
  EXPECT_EQ(all[1].schedule, "sum_before y; cut_region t");
  EXPECT_EQ(all[1].median_us, 80);
  EXPECT_EQ(all[1].stage, archive::Stage::promoted);
}

TEST_F(PlanArchives, AChoiceThatIsWrongIsRefusedUntilItIsRight) {
  const Options with = rewritten();
  PlanArchive archive = opened(with);
  const Result<Outcome> wrong = fail({ErrorCode::kNoCorrectCandidate, "none"});
  ASSERT_TRUE(archive.record(*with.choice, std::nullopt, 5, wrong));
  EXPECT_EQ(rows().at(0).error_code, "no-correct-candidate");
  EXPECT_EQ(rows().at(0).stage, archive::Stage::refused);
  ASSERT_TRUE(archive.record(*with.choice, std::nullopt, 5, outcome(*with.choice, 9, false)));
  EXPECT_EQ(rows().at(0).error_code, "");
  EXPECT_EQ(rows().at(0).stage, archive::Stage::screened);
}

TEST_F(PlanArchives, OneThatWasInterruptedIsNotKept) {
  const Options with = rewritten();
  PlanArchive archive = opened(with);
  const Result<Outcome> stopped = fail({ErrorCode::kInterrupted, "stopped"});
  ASSERT_TRUE(archive.record(*with.choice, std::nullopt, 5, stopped));
  EXPECT_TRUE(rows().empty());
}

TEST_F(PlanArchives, WhatWasChosenLastIsKnownAndNoStartOfBoundaries) {
  const Options with = options();
  EXPECT_FALSE(known());
  searched(cut, with);
  EXPECT_EQ(known()->choice.text(), "cut_region t");
  EXPECT_TRUE(known()->is_of_run);
  ASSERT_TRUE(opened(with).conclude(*choice_from_text("sum_before y; cut_region u"), 7));
  EXPECT_EQ(known()->schedule, "sum_before y; cut_region u");
  EXPECT_EQ(opened(with).start().text(), "cut_region t");
}

TEST_F(PlanArchives, WithoutARunTheFastestIsKnown) {
  const Options with = rewritten();
  PlanArchive archive = opened(with);
  ASSERT_TRUE(archive.record({}, std::nullopt, 5, outcome({}, 9)));
  ASSERT_TRUE(archive.record(*with.choice, std::nullopt, 5, outcome(*with.choice, 5)));
  EXPECT_EQ(known()->schedule, "sum_before y");
  EXPECT_FALSE(known()->is_of_run);
}

TEST_F(PlanArchives, OtherTracksAndTargetsHaveTheirOwn) {
  searched(cut, options());
  archive::Archive from = file();
  EXPECT_FALSE(*known_plan(from, graph, Track::tolerance, capabilities.arch));
  EXPECT_FALSE(*known_plan(from, graph, Track::fp32, "sm_90a"));
  graph::Graph other = graph;
  other.tensors[0].name = "other";
  EXPECT_FALSE(*known_plan(from, other, Track::fp32, capabilities.arch));
}

TEST_F(PlanArchives, PartitionsOfProgramsBeforeThisOneAreReadAndGoneOnWith) {
  EXPECT_FALSE(older());
  add_older("boundaries: cut_region t");
  EXPECT_FALSE(known());
  EXPECT_EQ(older()->choice.boundaries, cut);
  EXPECT_EQ(older()->schedule, "boundaries: cut_region t");
  EXPECT_EQ(opened(options()).start().boundaries, cut);
  EXPECT_FALSE(opened(options()).is_finished());
  Options anew = options();
  anew.resume = false;
  EXPECT_TRUE(opened(anew).start().is_as_given());
  searched(twice, options());
  EXPECT_EQ(opened(options()).start().boundaries, twice);
}

TEST_F(PlanArchives, OlderPartitionsThatNoSearchEndedWithAreNot) {
  add_older("boundaries: cut_region t", "running");
  EXPECT_FALSE(older());
  add_older("direct tile_x=1");
  EXPECT_FALSE(older());
}

TEST_F(PlanArchives, KeysTellApartWhatPlansDependOn) {
  const auto key = [&](const Options& with, const target::Capabilities& on) {
    return plans_key(graph, with, on, "a device");
  };
  const std::string own = key(options(), capabilities);
  EXPECT_EQ(key(rewritten(), capabilities), own);
  EXPECT_NE(plans_key(graph, options(), capabilities, "another"), own);
  target::Capabilities larger = capabilities;
  larger.num_sms += 1;
  EXPECT_NE(key(options(), larger), own);
  larger = capabilities;
  larger.arch = "another";
  EXPECT_NE(key(options(), larger), own);
  Options other = options();
  other.constants = {"w"};
  EXPECT_NE(key(other, capabilities), own);
  other = options();
  other.track = Track::tolerance;
  EXPECT_NE(key(other, capabilities), own);
}

TEST(PlanChoices, TextsReadBack) {
  for (const std::string text :
       {"as given", "sum_before y", "scale_after_sum y; sum_before y", "cut_region t3",
        "sum_before y; cut_region t3; join_regions a + b"})
    EXPECT_EQ(choice_from_text(text)->text(), text);
  for (const std::string text : {"sum_before y; nothing", "", "cut_region", "as fused",
                                 "boundaries: as given", "cut_region t3; sum_before y"}) {
    const auto none = choice_from_text(text);
    ASSERT_FALSE(none) << text;
    EXPECT_EQ(none.error().code, ErrorCode::kPlanInvalid);
  }
}

TEST(PlanChoices, TextsOfOlderPartitionsAreRead) {
  EXPECT_TRUE(choice_from_text("boundaries: as fused")->is_as_given());
  EXPECT_EQ(choice_from_text("boundaries: cut_region t3; join_regions a + b")->text(),
            "cut_region t3; join_regions a + b");
}

// An action of a plan in each form that a program wrote.
TEST(PlanChoices, OlderActionsAreRead) {
  const auto space = search_space_of({product(), Track::fp32}, *target::capabilities_of("cpu"));
  const Action now = step(ActionKind::fusion, "cut_region t3");
  nlohmann::json older = to_json(now);
  older.erase("plan_steps");
  nlohmann::json of_rewrite = older;
  of_rewrite["kind"] = "rewrite";
  of_rewrite["graph_steps"] = {"sum_before y"};
  nlohmann::json of_boundary = older;
  of_boundary["changes"] = plan::to_json({{BoundaryKind::cut_region, "t3"}});
  EXPECT_EQ(*action_from_json(to_json(now), space), now);
  EXPECT_EQ(action_from_json(of_rewrite, space)->plan_steps,
            std::vector<std::string>{"sum_before y"});
  EXPECT_EQ(action_from_json(of_boundary, space)->plan_steps,
            std::vector<std::string>{"cut_region t3"});
  of_boundary["changes"] = "cut_region";
  EXPECT_EQ(action_from_json(of_boundary, space).error().code, ErrorCode::kPlanInvalid);
}

TEST(PlanChoices, AnActionOfAConfigIsNoneOfAPlan) {
  const auto made = carry_out(Action{.sentence = "tiles of 8 rows"}, PlanChoice());
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kPlanInvalid);
}
}  // namespace
}  // namespace warploom::search
