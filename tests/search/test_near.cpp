// Learning across runs: a search begins where searches of problems like it ended, on other shapes,
// tracks and cards.
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>
#include "../graph/builder.h"
#include "archive/archive.h"
#include "archive/travel.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/file.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "kernels/space_walk.h"
#include "recorded.h"
#include "search/near.h"
#include "search/options.h"
#include "search/policy/archive_outcomes.h"
#include "search/policy/outcomes.h"
#include "search/policy/recorded_tree.h"
#include "search/problem_record.h"
#include "search/search_space.h"
#include "search/strategy/strategy.h"
#include "search/task.h"
#include "search/tuning_session.h"
#include "target/capabilities.h"
#include "verify/evaluator.h"

namespace warploom::search {
namespace {
using archive::Archive;
using kernels::KernelConfig;

graph::Graph product(int64_t m, int64_t k, int64_t n, Dtype dtype = Dtype::f32) {
  graph::Builder b("product");
  const auto x = b.input("x", dtype, {m, k});
  const auto w = b.input("w", dtype, {k, n});
  b.output(b.add(graph::OpKind::MatMul, {x, w}));
  return *graph::decompose(*b.finish());
}

graph::Graph softmax(int64_t rows, int64_t columns) {
  graph::Builder b("softmax");
  const auto x = b.input("x", Dtype::f32, {rows, columns});
  b.output(b.add(graph::OpKind::Softmax, {x}, {{"axis", int64_t{1}}}));
  return *graph::decompose(*b.finish());
}

class Near : public testing::Test {
 protected:
  SearchSpace space_of(graph::Graph graph, Track track = Track::fp32) const {
    return search_space_of({std::move(graph), track}, recorded_target());
  }

  archive::Problem problem_of(const SearchSpace& space, char digit) const {
    archive::Problem out{std::string(32, digit), space.region.graph.name};
    out.track = name_of(space.region.track);
    out.target = space.capabilities.arch;
    out.device = "a device";
    note_problem(out, space);
    return out;
  }

  // A problem that was searched: its configs with these times; 0: refused.
  archive::Problem add(Archive& into, const SearchSpace& space, char digit,
                       const std::map<std::string, double>& times) const {
    const archive::Problem problem = problem_of(space, digit);
    EXPECT_TRUE(into.add_problem(problem));
    for (const auto& [text, us] : times) {
      archive::Candidate one{.problem = problem.key, .schedule = text};
      one.fields = nlohmann::json::object();
      one.stage = us > 0 ? archive::Stage::screened : archive::Stage::refused;
      if (us > 0) one.median_us = us;
      if (us <= 0) one.error_code = "candidate-wrong";
      EXPECT_TRUE(into.record(one));
    }
    return problem;
  }

  // Some legal configs of a family, in the order of its walk, without tiles that a shape cuts off.
  static std::vector<KernelConfig> configs_of(const SearchSpace& space, const std::string& family,
                                              size_t most) {
    std::vector<KernelConfig> out;
    for (const kernels::FamilyPtr& one : space.families) {
      if (one->name() != family) continue;
      std::set<std::string> seen;
      kernels::SpaceWalk(*one).all([&](const KernelConfig& config) {
        const bool is_large =
            config.get("tile_x").value_or(1) > 32 || config.get("tile_y").value_or(1) > 32;
        if (!is_large && seen.insert(config.text()).second) out.push_back(config);
        return out.size() < most;
      });
    }
    return out;
  }

  std::vector<NearStart> starts(Archive& from, const SearchSpace& space,
                                bool is_known = false) const {
    return *near_starts(from, problem_of(space, 'f'), space, is_known);
  }

  ScratchFolder folder_{"near-test"};
  Archive archive_ = *Archive::open(folder_.path() / "archive.sqlite");
};

TEST_F(Near, ASearchMayBeginAtTheBestOfAnotherShape) {
  const SearchSpace before = space_of(transposed(256, 384));
  const auto configs = configs_of(before, "direct", 3);
  const std::map<std::string, double> times = {
      {configs[0].text(), 30}, {configs[1].text(), 10}, {configs[2].text(), 20}};
  add(archive_, before, 'a', times);
  const auto found = starts(archive_, space_of(transposed(300, 400)));
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].config, configs[1]);
  EXPECT_EQ(found[0].origin["problem"], std::string(32, 'a'));
  EXPECT_EQ(found[0].origin["was"], configs[1].text());
  EXPECT_GT(found[0].origin["distance"], 0.0);
}

TEST_F(Near, TheNearestProblemComesFirst) {
  const SearchSpace far = space_of(transposed(4096, 4096));
  const SearchSpace close = space_of(transposed(256, 384));
  const auto configs = configs_of(far, "direct", 2);
  add(archive_, far, 'a', {{configs[0].text(), 1}});
  add(archive_, close, 'b', {{configs[1].text(), 500}});
  const auto found = starts(archive_, space_of(transposed(256, 400)));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].config, configs[1]);
  EXPECT_LT(found[0].origin["distance"], found[1].origin["distance"]);
}

TEST_F(Near, AProblemOfAnotherKindIsTooFar) {
  // Loops cover both, so that its config could be one here.
  const SearchSpace before = space_of(transposed(256, 384));
  add(archive_, before, 'a', {{configs_of(before, "direct", 1).at(0).text(), 10}});
  EXPECT_TRUE(starts(archive_, space_of(product(256, 384, 256))).empty());
}

TEST_F(Near, AnotherTrackIsFurtherThanTheSameAndStillNear) {
  const SearchSpace before = space_of(product(256, 256, 256));
  const SearchSpace tolerant = space_of(product(256, 256, 256), Track::tolerance);
  const auto configs = configs_of(before, "matmul_cpu", 1);
  add(archive_, tolerant, 'a', {{configs[0].text(), 10}});
  const auto found = starts(archive_, before);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].origin["track"], "tolerance");
  EXPECT_GT(found[0].origin["distance"], 0.2);
  EXPECT_EQ(distance_between(problem_of(before, 'a'), problem_of(before, 'b')), 0);
}

// A config of a card with more shared memory becomes one that this card can hold.
TEST_F(Near, WhatAnotherCardHeldIsRepairedForThisOne) {
  const graph::Graph graph = product(4096, 4096, 4096, Dtype::f16);
  const auto space_on = [&](const char* arch) {
    return search_space_of({graph, Track::fp16}, *target::capabilities_of(arch));
  };
  const SearchSpace ampere = space_on("sm_80");
  const SearchSpace ada = space_on("sm_89");
  const auto family_of = [](const SearchSpace& space) {
    return *std::ranges::find(space.families, "matmul_mma", &kernels::Family::name);
  };
  std::optional<KernelConfig> large;
  kernels::SpaceWalk(*family_of(ampere)).all([&](const KernelConfig& config) {
    if (!family_of(ada)->validate(config)) large = config;
    return !large;
  });
  ASSERT_TRUE(large) << "sm_89 can hold whatever sm_80 can";
  add(archive_, ampere, 'a', {{large->text(), 10}});
  const auto found = starts(archive_, ada);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found[0].config, *large);
  EXPECT_TRUE(family_of(ada)->validate(found[0].config));
}

TEST_F(Near, WhatWasRefusedOrWrittenByAModelIsNoStart) {
  const SearchSpace before = space_of(transposed(256, 384));
  const auto configs = configs_of(before, "direct", 2);
  const auto problem = add(archive_, before, 'a', {{configs[0].text(), 0}});
  archive::Candidate written{.problem = problem.key, .schedule = configs[1].text()};
  written.stage = archive::Stage::promoted;
  written.median_us = 1;
  written.source = "a text";
  ASSERT_TRUE(archive_.record(written));
  EXPECT_TRUE(starts(archive_, space_of(transposed(300, 400))).empty());
}

TEST_F(Near, ASearchThatIsKnownTakesItsOwnProblemOfOtherArchivesAlone) {
  const SearchSpace space = space_of(transposed(256, 384));
  const auto configs = configs_of(space, "direct", 2);
  Archive other = *Archive::open(folder_.path() / "other.sqlite");
  add(other, space, 'f', {{configs[0].text(), 10}});
  ASSERT_TRUE(archive::export_archive(other, folder_.path() / "x.wlx", ""));
  ASSERT_TRUE(archive::import_archive(archive_, folder_.path() / "x.wlx"));
  add(archive_, space_of(transposed(256, 400)), 'b', {{configs[1].text(), 5}});
  EXPECT_EQ(starts(archive_, space).size(), 2u);
  const auto found = starts(archive_, space, true);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].config, configs[0]);
  EXPECT_EQ(found[0].origin["from"], "x.wlx");
  EXPECT_EQ(found[0].origin["distance"], 0);
}

TEST_F(Near, AProblemOfAnOlderProgramIsNearNothing) {
  const SearchSpace space = space_of(transposed(256, 384));
  archive::Problem old = problem_of(space, 'a');
  old.features = {};
  EXPECT_TRUE(std::isinf(distance_between(old, problem_of(space, 'b'))));
}

TEST_F(Near, AProblemsRecordGivesItsRegionBack) {
  const SearchSpace space = space_of(softmax(64, 96));
  const archive::Problem problem = problem_of(space, 'a');
  const auto text = nlohmann::json(problem).dump();
  const auto read = nlohmann::json::parse(text).get<archive::Problem>();
  const auto region = region_of(read);
  ASSERT_TRUE(region);
  EXPECT_EQ(graph::to_text(region->graph), graph::to_text(space.region.graph));
  EXPECT_EQ(capabilities_of(read)->num_sms, recorded_target().num_sms);
}

TEST_F(Near, LargeConstantsAreInputsInARecord) {
  graph::Builder b("scaled");
  const auto x = b.input("x", Dtype::f32, {64, 2048});
  const std::vector<double> ones(2048, 1);
  b.output(b.add(graph::OpKind::Mul, {x, b.constant("w", Dtype::f32, {2048}, ones)}));
  const SearchSpace space = space_of(*graph::decompose(*b.finish()));
  const auto region = region_of(problem_of(space, 'a'));
  ASSERT_TRUE(region);
  EXPECT_EQ(region->graph.inputs.size(), 2u);
}

TEST_F(Near, AGraphWhoseShapesDoNotFollowIsNone) {
  archive::Problem problem = problem_of(space_of(softmax(64, 96)), 'a');
  problem.graph["tensors"].back()["shape"] = {64, 97};
  EXPECT_FALSE(region_of(problem));
  problem.graph["nodes"][0]["outputs"] = {99};
  EXPECT_FALSE(region_of(problem));
}

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
