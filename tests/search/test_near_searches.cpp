// Learning across runs: searches that begin where those of problems like theirs ended, and what an
// archive of searches teaches a policy.
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>
#include "archive/archive.h"
#include "archive/travel.h"
#include "base/error.h"
#include "base/file.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "kernels/family.h"
#include "near_fixture.h"
#include "recorded.h"
#include "search/options.h"
#include "search/policy/archive_outcomes.h"
#include "search/policy/outcomes.h"
#include "search/policy/recorded_tree.h"
#include "search/search_space.h"
#include "search/strategy/strategy.h"
#include "search/task.h"
#include "search/tuning_session.h"
#include "target/capabilities.h"
#include "verify/evaluator.h"

namespace warploom::search {
namespace {
// What a search of recorded verdicts proposes, in its order.
class NearSearch : public Near {
 protected:
  std::vector<std::string> proposed(const graph::Graph& graph, const Options& options) {
    Task task = make_task({graph, Track::fp32}, *target::capabilities_of("cpu"), 1);
    task.space = search_space_of({graph, Track::fp32}, *target::capabilities_of("cpu"));
    std::vector<std::string> out;
    task.recorded = [&](const KernelConfig& config, const verify::Request&) {
      out.push_back(config.text());
      verify::Verdict verdict;
      verdict.accepted = true;
      const bool is_best = config.text() == best_;
      verdict.median_us = is_best ? 10 : 100;
      return Result<verify::Verdict>(verdict);
    };
    const auto outcome = tune(task, options);
    EXPECT_TRUE(outcome) << describe(outcome.error());
    return out;
  }

  Options options() const {
    Options out;
    out.archive = folder_.path() / "searches.sqlite";
    out.strategy = Strategy::enumerate;
    out.max_candidates = 12;
    out.jobs = 1;
    return out;
  }

  std::string best_;
};

TEST_F(NearSearch, TriesTheBestOfTheNearestEarlierSearchBehindTheFirstGuesses) {
  Options fresh = options();
  fresh.archive = folder_.path() / "fresh.sqlite";
  best_ = proposed(product(192, 192, 192), fresh).at(9);
  proposed(product(192, 192, 192), options());  // whose best it is
  const auto then = proposed(product(192, 192, 256), options());
  const auto place = std::ranges::find(then, best_) - then.begin();
  EXPECT_LE(place, 3);  // behind a guess of each of the two families
}

TEST_F(NearSearch, TriesAGuessOfEachFamilyBeforeIt) {
  Options fresh = options();
  fresh.archive = folder_.path() / "fresh.sqlite";
  const auto alone = proposed(product(192, 192, 256), fresh);
  best_ = proposed(product(192, 192, 192), fresh).at(9);
  proposed(product(192, 192, 192), options());
  const auto then = proposed(product(192, 192, 256), options());
  EXPECT_EQ(then[0], alone[0]);
  EXPECT_EQ(then[1], alone[1]);
}

// A search that goes on begins where it had begun, whatever came in meanwhile.
TEST_F(NearSearch, ASearchThatIsKnownIsNotBegunAtOthersAgain) {
  Options elsewhere = options();
  elsewhere.archive = folder_.path() / "elsewhere.sqlite";
  proposed(product(192, 192, 256), options());
  best_ = proposed(product(192, 192, 192), elsewhere).at(9);
  proposed(product(192, 192, 192), options());
  archive::Archive from = *Archive::open(options().archive);
  Options more = options();
  more.max_candidates = 14;
  proposed(product(192, 192, 256), more);
  const auto problems = *from.problems();
  ASSERT_EQ(problems.size(), 2u);
  for (const archive::Problem& problem : problems) {
    const auto runs = *from.runs(problem.key);
    EXPECT_TRUE(runs.back().near.empty() || runs.size() == 1) << runs.back().near;
  }
}

TEST_F(NearSearch, WithoutResumeNothingEarlierIsUsed) {
  Options elsewhere = options();
  elsewhere.archive = folder_.path() / "elsewhere.sqlite";
  best_ = proposed(product(192, 192, 192), elsewhere).at(9);
  proposed(product(192, 192, 192), options());
  Options anew = options();
  anew.resume = false;
  Options fresh = options();
  fresh.archive = folder_.path() / "fresh.sqlite";
  const auto alone = proposed(product(192, 192, 256), fresh);
  EXPECT_EQ(proposed(product(192, 192, 256), anew), alone);
}

TEST_F(Near, AnArchivesSearchesTeachAPolicy) {
  const SearchSpace space = space_of(transposed(256, 384));
  const auto configs = configs_of(space, "direct", 40);
  std::map<std::string, double> times;
  for (size_t i = 0; i < configs.size(); ++i)
    times[configs[i].text()] = i == 5 ? 0 : 10.0 + static_cast<double>(i);
  add(archive_, space, 'a', times);
  archive::Problem old = problem_of(space, 'b');
  old.graph = {};
  ASSERT_TRUE(archive_.add_problem(old));
  archive::Problem plans{std::string(32, 'c'), "plans of a network", "fp32"};
  ASSERT_TRUE(archive_.add_problem(plans));  // choices, which are not left out but none
  const auto taught = outcomes_of(archive_);
  ASSERT_TRUE(taught) << describe(taught.error());
  EXPECT_EQ(taught->without, 1u);
  ASSERT_EQ(taught->outcomes.size(), 1u);
  const RecordedProblem& problem = taught->outcomes[0].problems.at(0);
  EXPECT_EQ(problem.plans.size(), configs.size());
  EXPECT_EQ(problem.best_us(), 10.0);
  EXPECT_EQ(std::ranges::count(problem.plans, "candidate-wrong", &RecordedPlan::code), 1);
  EXPECT_EQ(trees_of(taught->outcomes[0], Use::train).size(), 1u);
}

TEST_F(Near, ForeignSearchesTeachOnTheirOwnTarget) {
  const SearchSpace here = space_of(transposed(256, 384));
  const auto configs = configs_of(here, "direct", 2);
  add(archive_, here, 'a', {{configs[0].text(), 10}});
  target::Capabilities larger = recorded_target();
  larger.num_sms = 64;
  const SearchSpace there = search_space_of({transposed(256, 384), Track::fp32}, larger);
  Archive other = *Archive::open(folder_.path() / "other.sqlite");
  add(other, there, 'c', {{configs[1].text(), 10}});
  ASSERT_TRUE(archive::export_archive(other, folder_.path() / "x.wlx", ""));
  ASSERT_TRUE(archive::import_archive(archive_, folder_.path() / "x.wlx"));
  const auto taught = outcomes_of(archive_);
  EXPECT_EQ(taught->foreign, 1u);
  ASSERT_EQ(taught->outcomes.size(), 2u);
  EXPECT_EQ(taught->outcomes[1].capabilities.num_sms, 64);
}

// Which configs led to which is kept: a candidate's first parent, where it was recorded before.
TEST_F(Near, WhatLedToAPlanIsKeptOfAnArchive) {
  const SearchSpace space = space_of(transposed(256, 384));
  const auto configs = configs_of(space, "direct", 2);
  const auto problem = add(archive_, space, 'a', {{configs[0].text(), 10}});
  archive::Candidate child{.problem = problem.key, .schedule = configs[1].text()};
  child.parents = {configs[0].text()};
  child.stage = archive::Stage::screened;
  child.median_us = 5;
  ASSERT_TRUE(archive_.record(child));
  const auto taught = outcomes_of(archive_);
  const auto& plans = taught->outcomes.at(0).problems.at(0).plans;
  ASSERT_EQ(plans.size(), 2u);
  EXPECT_EQ(plans[1].parent, 0);
  EXPECT_EQ(plans[1].origin, Origin::forward);
}
}  // namespace
}  // namespace warploom::search
