// Choices of a whole plan: which are offered, how the time goes to them, and what is kept of them.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "../graph/builder.h"
#include "archive/archive.h"
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/file.h"
#include "graph/graph.h"
#include "graph/rewrite.h"
#include "graph/track.h"
#include "plan/plan.h"
#include "search/action/action.h"
#include "search/action/actions_of.h"
#include "search/action/plan_actions.h"
#include "search/choice_search.h"
#include "search/lineage.h"
#include "search/optimize.h"
#include "search/options.h"
#include "search/outcome.h"
#include "search/plan_archive.h"
#include "search/plan_choice.h"
#include "search/search_space.h"
#include "target/capabilities.h"

namespace warploom::search {
namespace {
using graph::Graph;
using graph::OpKind;
using graph::TensorId;

// (x·a)·b, of which b is narrow.
Graph chain_of_products() {
  graph::Builder b("chain");
  const TensorId x = b.input("x", Dtype::f32, {96, 64});
  const TensorId hidden = b.add(OpKind::MatMul, {x, b.input("a", Dtype::f32, {64, 64})});
  b.output(b.add(OpKind::MatMul, {hidden, b.input("b", Dtype::f32, {64, 2})}));
  return *b.finish();
}

// The sum of the columns of a scaled product, whose rewrites make each other possible.
Graph sum_of_product() {
  graph::Builder b("sums");
  const TensorId x = b.input("x", Dtype::f32, {96, 64});
  const TensorId product = b.add(OpKind::MatMul, {x, b.input("w", Dtype::f32, {64, 48})});
  const TensorId two = b.constant("two", Dtype::f32, {}, std::vector{2.0});
  const TensorId half = b.add(OpKind::Div, {product, two});
  b.output(b.add(OpKind::ReduceSum, {half},
                 {{"axes", std::vector<int64_t>{1}}, {"keepdims", int64_t{1}}}));
  return *b.finish();
}

Graph plain_product() {
  graph::Builder b("plain");
  const TensorId x = b.input("x", Dtype::f32, {32, 32});
  b.output(b.add(OpKind::MatMul, {x, b.input("w", Dtype::f32, {32, 32})}));
  return *b.finish();
}

// The step that takes the second product of a chain first.
std::string products_right(const Graph& graph) {
  return "products_right " + graph.tensor(graph.outputs[0]).name;
}

std::vector<OfferedChoice> offered(const Graph& graph) {
  return offered_choices(graph, Track::fp32, *target::capabilities_of("sm_90a"));
}

TEST(Choices, WhatPromisesToBeFasterIsOfferedBeforeWhatWasGiven) {
  const auto found = offered(chain_of_products());
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].choice.text(), "products_right MatMul_1_out");
  EXPECT_EQ(found[0].action->kind, ActionKind::rewrite);
  EXPECT_EQ(found[0].action->eases, Bottleneck::arithmetic);
  EXPECT_LT(found[0].predicted_us, found[1].predicted_us);
  EXPECT_LT(found[0].products, found[1].products);
  EXPECT_TRUE(found[1].choice.is_as_given());
  EXPECT_FALSE(found[1].action);
}

TEST(Choices, OfAGraphWithoutAnyTheGivenOneIsAlone) {
  const auto found = offered(plain_product());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].choice.is_as_given());
}

// (x·a)·b or x·(a·b), over widths of which the one or the other is a little cheaper.
TEST(Choices, AreOfferedWhereTheyPromiseATwentiethAsAWhole) {
  size_t count[2] = {};
  for (int64_t width = 1500; width <= 2500; width += 50) {
    graph::Builder b("chain");
    const TensorId x = b.input("x", Dtype::f32, {2048, 2048});
    const TensorId hidden = b.add(OpKind::MatMul, {x, b.input("a", Dtype::f32, {2048, 2048})});
    b.output(b.add(OpKind::MatMul, {hidden, b.input("b", Dtype::f32, {2048, width})}));
    const Graph given = *b.finish();
    const auto found = offered(given);
    const auto right =
        graph::rewrite(given, *graph::rewrite_from_text(products_right(given)), Track::fp32);
    ASSERT_TRUE(right);
    const double given_us = found.back().predicted_us;
    const bool is_worth = offered(*right).back().predicted_us * 1.05 <= given_us;
    EXPECT_EQ(found.size(), is_worth ? 2u : 1u) << width;
    ++count[is_worth ? 1 : 0];
  }
  EXPECT_GT(count[0], 0u);
  EXPECT_GT(count[1], 0u);
}

// Of weights, a·b is computed once before all calls: x·(a·b) is one product. Weights of more bytes
// than are looked at count as known inputs do.
TEST(Choices, WhatDependsOnWeightsAloneCostsACallNothing) {
  const auto chain = [](int64_t width, bool are_weights) {
    graph::Builder b("chain");
    const TensorId x = b.input("x", Dtype::f32, {256, width});
    const auto weight = [&](const char* name) {
      const std::vector<double> ones(as_size(width * width), 1);
      return are_weights ? b.constant(name, Dtype::f32, {width, width}, ones)
                         : b.input(name, Dtype::f32, {width, width});
    };
    const TensorId hidden = b.add(OpKind::MatMul, {x, weight("a")});
    b.output(b.add(OpKind::MatMul, {hidden, weight("b")}));
    return *b.finish();
  };
  for (const int64_t width : {16, 64}) {
    const double one_product = 2. * 256 * as_double(width * width);
    const auto weights = offered(chain(width, true));
    ASSERT_EQ(weights.size(), 2u) << width;
    EXPECT_EQ(weights[0].products, one_product);
    EXPECT_EQ(weights[1].products, 2 * one_product);
    const auto known = offered_choices(chain(width, false), Track::fp32,
                                       *target::capabilities_of("sm_90a"), {"a", "b"});
    ASSERT_EQ(known.size(), 2u) << width;
    EXPECT_EQ(known[0].products, one_product);
  }
}

// On a target whose rates nobody knows operations and bytes are counted.
TEST(Choices, AreOfferedWithoutRatesToo) {
  target::Capabilities unknown = *target::capabilities_of("cpu");
  unknown.dram_gbs = 0;
  unknown.fp32_tflops = 0;
  const auto found = offered_choices(chain_of_products(), Track::fp32, unknown);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_LT(found[0].predicted_us, found[1].predicted_us);
  EXPECT_GT(found[0].predicted_us, found[0].products);
}

// Of a long chain the walk goes on until nothing is saved: vectors at its end are taken first.
TEST(Choices, AWalkTakesAsManyStepsAsSaveTime) {
  graph::Builder b("long");
  TensorId left = b.input("x", Dtype::f32, {512, 512});
  for (int i = 0; i < 5; ++i)
    left = b.add(OpKind::MatMul, {left, b.input("a" + std::to_string(i), Dtype::f32, {512, 512})});
  b.output(b.add(OpKind::MatMul, {left, b.input("v", Dtype::f32, {512, 1})}));
  const auto found = offered(*b.finish());
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].products, 6 * 2. * 512 * 512);
  EXPECT_EQ(found[0].choice.rewrites.size(), 5u);
}

TEST(Choices, StepsThatMakeEachOtherPossibleAreOneAction) {
  const auto found = offered(sum_of_product());
  ASSERT_EQ(found.size(), 2u);
  const auto& steps = found[0].action->plan_steps;
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_TRUE(steps[0].starts_with("scale_after_sum ")) << steps[0];
  EXPECT_TRUE(steps[1].starts_with("sum_before ")) << steps[1];
  EXPECT_NE(found[0].action->sentence.find("; then "), std::string::npos);
}

// A floor of what was given would refuse what does less.
TEST(Choices, NoFloorIsAboveWhatARewriteNeeds) {
  const auto cpu = *target::capabilities_of("sm_90a");
  EXPECT_EQ(least_flops(sum_of_product(), Track::fp32, cpu), 2 * 96 * 64);
  EXPECT_EQ(least_flops(plain_product(), Track::fp32, cpu), 2 * 32 * 32 * 32);
}

TEST(Choices, AnActionOfAPlanReadsBackAndIsNoneOfAConfig) {
  const auto found = offered(sum_of_product());
  const auto space =
      search_space_of({plain_product(), Track::fp32}, *target::capabilities_of("cpu"));
  const auto back = action_from_json(to_json(*found[0].action), space);
  ASSERT_TRUE(back) << describe(back.error());
  EXPECT_EQ(*back, *found[0].action);
  EXPECT_EQ(*carry_out(*back, PlanChoice()), found[0].choice);
  const auto config = carry_out(space, *back, ActionSpace(space).entries("direct").at(0));
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().code, ErrorCode::kScheduleIllegal);
}

TEST(Choices, RefusedRewritesSayTheirConstraints) {
  graph::Builder b("given");
  const TensorId a = b.input("a", Dtype::f32, {8, 8});
  const TensorId sum = b.add(OpKind::Add, {a, b.input("b", Dtype::f32, {8, 8})});
  b.output(b.add(OpKind::MatMul, {b.input("x", Dtype::f32, {8, 8}), sum}));
  const auto actions = rewrite_actions(*b.finish(), Track::fp32);
  EXPECT_TRUE(actions.legal.empty());
  ASSERT_EQ(actions.refused.size(), 1u);
  EXPECT_EQ(actions.refused[0].action.plan_steps[0], "distribute MatMul_1_out");
  ASSERT_EQ(actions.refused[0].why.size(), 1u);
  EXPECT_NE(actions.refused[0].why[0].expected.find("cancel"), std::string::npos);
}

// Searches that take what they are told, of a clock of their own.
class ChoiceSearches : public testing::Test {
 protected:
  struct Told {
    double us = 0;  // 0: no candidate is right
    bool proven = true;
    double seconds = 1;
    bool is_stopped = false;  // somebody interrupts meanwhile
  };

  void SetUp() override {
    options_.budget_seconds = 10;
    options_.now = [this] { return now_; };
    options_.interrupted = &stopped_;
    fast_.choice.rewrites = {{graph::RewriteKind::sum_before, "y"}};
    fast_.action = Action{.kind = ActionKind::rewrite, .plan_steps = {"sum_before y"}};
  }

  Result<Outcome> run(std::vector<OfferedChoice> offered) {
    ChoiceSearch search(
        std::move(offered), options_,
        [this](const Options& options) -> Result<Outcome> {
          const std::string text = options.choice->text();
          asked_.push_back(text);
          budgets_.push_back(options.budget_seconds - options.begun_seconds);
          forced_.push_back(options.force_search);
          const Told& told = told_.at(text);
          now_ += told.seconds;
          stopped_ = told.is_stopped;
          if (told.us <= 0) return fail({ErrorCode::kNoCorrectCandidate, text});
          Outcome out;
          out.problem = text;
          out.verdict.median_us = told.us;
          out.proven = told.proven;
          out.candidates = 3;
          out.refused = 2;
          return out;
        },
        [this](const OfferedChoice& one, const Result<Outcome>& found) {
          recorded_.emplace_back(one.choice.text(), found.has_value());
          return ok();
        });
    return search.run();
  }

  double now_ = 0;
  Options options_;
  OfferedChoice fast_;
  OfferedChoice given_;
  std::map<std::string, Told> told_ = {{"sum_before y", {5}}, {"as given", {9}}};
  std::vector<std::string> asked_;
  std::vector<double> budgets_;
  std::vector<bool> forced_;
  std::atomic<bool> stopped_ = false;
  std::vector<std::pair<std::string, bool>> recorded_;
};

TEST_F(ChoiceSearches, TakeTheFasterByTimesAlone) {
  for (const double us : {5.0, 20.0}) {
    now_ = 0;
    told_["sum_before y"].us = us;
    const auto found = run({fast_, given_});
    ASSERT_TRUE(found);
    EXPECT_EQ(found->problem, us < 9 ? "sum_before y" : "as given");
    EXPECT_EQ(found->candidates, 6);
    EXPECT_EQ(found->refused, 4);
    EXPECT_EQ(found->seconds, 2);
    ASSERT_EQ(found->choices.size(), 2u);
    EXPECT_EQ(found->choices[0]["best_us"], us);
    EXPECT_EQ(found->choices[1]["best_us"], 9.0);
  }
}

TEST_F(ChoiceSearches, GiveTheFirstTimeByItsPromiseAndTheLastTheRest) {
  for (const auto& [promised, share] : {std::pair(15.0, 0.5), {4.0, 0.6}, {0.1, 0.8}}) {
    now_ = 0;
    budgets_.clear();
    fast_.predicted_us = promised;
    given_.predicted_us = 6;
    ASSERT_TRUE(run({fast_, given_}));
    ASSERT_EQ(budgets_.size(), 2u);
    EXPECT_DOUBLE_EQ(budgets_[0], 10 * share) << promised;
    EXPECT_DOUBLE_EQ(budgets_[1], 9);
  }
}

TEST_F(ChoiceSearches, PreferWhatWasJudgedWhole) {
  told_["sum_before y"].proven = false;
  EXPECT_EQ(run({fast_, given_})->problem, "as given");
}

TEST_F(ChoiceSearches, GoOnWithWhatWasGivenWhereAnotherIsWrong) {
  told_["sum_before y"].us = 0;
  const auto found = run({fast_, given_});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->problem, "as given");
  EXPECT_EQ(found->choices[0]["error_code"], "no-correct-candidate");
  const std::vector<std::pair<std::string, bool>> expected = {{"sum_before y", false},
                                                              {"as given", true}};
  EXPECT_EQ(recorded_, expected);
}

TEST_F(ChoiceSearches, FailWithWhatTheGivenOneSaysWhereNothingIsRight) {
  told_ = {{"sum_before y", {0}}, {"as given", {0}}};
  const auto found = run({fast_, given_});
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::kNoCorrectCandidate);
  EXPECT_EQ(found.error().message, "as given");
}

TEST_F(ChoiceSearches, LeaveOutWhatItsFloorSaysCannotBeFaster) {
  given_.floor_us = 6;
  told_["sum_before y"].seconds = 4;
  const auto found = run({fast_, given_});
  ASSERT_TRUE(found);
  // The rest of the time is for what is faster.
  EXPECT_EQ(asked_, (std::vector<std::string>{"sum_before y", "sum_before y"}));
  EXPECT_DOUBLE_EQ(budgets_[1], 6);
  EXPECT_EQ(found->choices[1]["choice"], "as given");
  EXPECT_EQ(found->choices[1]["left_out"], true);
}

TEST_F(ChoiceSearches, DoNotSearchOnWhereLittleIsLeftOrNobodyWants) {
  given_.floor_us = 6;
  for (const bool is_late : {true, false}) {
    now_ = 0;
    asked_.clear();
    told_["sum_before y"].seconds = is_late ? 9.1 : 8.9;
    ASSERT_TRUE(run({fast_, given_}));
    EXPECT_EQ(asked_.size(), is_late ? 1u : 2u);
  }
  now_ = 0;
  asked_.clear();
  told_["sum_before y"].seconds = 1;
  options_.resume = false;
  ASSERT_TRUE(run({fast_, given_}));
  EXPECT_EQ(asked_.size(), 1u);
  now_ = 0;
  asked_.clear();
  options_.resume = true;
  told_["sum_before y"].is_stopped = true;
  ASSERT_TRUE(run({fast_, given_}));
  EXPECT_EQ(asked_.size(), 1u);
}

TEST_F(ChoiceSearches, EndWhereSomebodyInterrupts) {
  told_["sum_before y"].is_stopped = true;
  const auto found = run({fast_, given_});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->problem, "sum_before y");
  EXPECT_EQ(asked_.size(), 1u);
}

// What is answered from the archive would take none of the time that is left.
TEST_F(ChoiceSearches, SearchTheLaterOnesWhateverTheArchiveKnows) {
  ASSERT_TRUE(run({fast_, given_}));
  EXPECT_EQ(forced_, (std::vector<bool>{false, true}));
}

TEST_F(ChoiceSearches, KeepTheFirstOfTwoThatAreAsFast) {
  told_["as given"].us = 5;
  EXPECT_EQ(run({fast_, given_})->problem, "sum_before y");
}

TEST_F(ChoiceSearches, ThatHaveNoChoiceTellOfNone) {
  const auto found = run({given_});
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->choices.is_null());
  EXPECT_DOUBLE_EQ(budgets_.at(0), 10);
}

TEST_F(ChoiceSearches, TellWhatEachWasPredictedToTakeAndTheStepInWords) {
  fast_.predicted_us = 4;
  fast_.action->sentence = "sum before";
  told_["sum_before y"].proven = false;
  const auto found = run({fast_, given_});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->choices[0]["predicted_us"], 4.0);
  EXPECT_EQ(found->choices[0]["sentence"], "sum before");
  EXPECT_EQ(found->choices[0]["proven"], false);
  EXPECT_EQ(found->choices[0]["left_out"], false);
  EXPECT_EQ(found->choices[1]["sentence"], "");
  EXPECT_EQ(found->choices[1]["proven"], true);
}

TEST_F(ChoiceSearches, DoNotBelieveAnUnprovenTimeAgainstAFloor) {
  given_.floor_us = 6;
  told_["sum_before y"].proven = false;
  EXPECT_EQ(run({fast_, given_})->problem, "as given");
}

TEST_F(ChoiceSearches, EndWithTheBudget) {
  told_["sum_before y"].seconds = 10;
  const auto found = run({fast_, given_});
  ASSERT_TRUE(found);
  EXPECT_EQ(asked_.size(), 1u);
}

// From a graph to kernels of another one, judged by what was given, on this machine's cores.
class ChosenPlans : public testing::Test {
 protected:
  void SetUp() override { ::setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1); }

  Options options() const {
    Options out;
    out.target = "cpu";
    out.budget_seconds = 60;
    out.max_candidates = 1;
    out.archive = (folder_.path() / "archive.sqlite").string();
    return out;
  }

  ScratchFolder folder_{"choices"};
};

TEST_F(ChosenPlans, AreRightByTheGivenGraphAndSayTheirRewrites) {
  Options named = options();
  named.choice = *choice_from_text("products_right MatMul_1_out");
  const auto found = optimize(chain_of_products(), named);
  ASSERT_TRUE(found) << describe(found.error());
  EXPECT_TRUE(found->proven);
  EXPECT_EQ(found->plan.rewrites, named.choice->rewrites);
  EXPECT_NE(found->plan.text().find("rewrites: products_right MatMul_1_out\n"), std::string::npos);
  plan::Plan other = found->plan;
  other.rewrites.clear();
  EXPECT_NE(other.hash(), found->plan.hash());
  EXPECT_EQ(to_json(*found)["rewrites"][0], "products_right MatMul_1_out");
}

TEST_F(ChosenPlans, AreCandidatesOfTheArchiveWithTheirLineage) {
  const Graph given = sum_of_product();
  const auto found = optimize(given, options());
  ASSERT_TRUE(found) << describe(found.error());
  ASSERT_FALSE(found->plans_key.empty());
  auto from = archive::Archive::open(options().archive);
  ASSERT_TRUE(from);
  const auto problems = *from->problems();
  size_t of_plans = 0;
  for (const archive::Problem& one : problems)
    of_plans += is_of_plans(one) ? 1 : 0;
  EXPECT_EQ(of_plans, 1u);
  const auto all = *from->candidates(found->plans_key);
  ASSERT_FALSE(all.empty());
  const Lineage steps = lineage_of(all, all[0].schedule);
  const auto space = search_space_of({given, Track::fp32}, *target::capabilities_of("cpu"));
  const auto action = action_from_json(steps.back().action, space);
  ASSERT_TRUE(action) << describe(action.error());
  const auto choice = carry_out(*action, PlanChoice());
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->text(), all[0].schedule);
}

TEST_F(ChosenPlans, WithARewriteThatIsNoneAreRefused) {
  Options named = options();
  named.choice = *choice_from_text("sum_before MatMul_1_out");
  const auto found = optimize(chain_of_products(), named);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::kPlanInvalid);
}
}  // namespace
}  // namespace warploom::search
