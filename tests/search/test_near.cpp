// Where a search may begin: how far problems are from each other, and what the nearest ones give,
// of other shapes, tracks and cards.
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include "archive/archive.h"
#include "archive/travel.h"
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/file.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "kernels/config/kernel_config.h"
#include "kernels/family.h"
#include "kernels/space_walk.h"
#include "near_fixture.h"
#include "recorded.h"
#include "search/near.h"
#include "search/search_space.h"
#include "target/capabilities.h"

namespace warploom::search {
namespace {
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

TEST_F(Near, ADistanceIsThatOfPointsInAllFeatures) {
  const auto at = [](nlohmann::json features, const char* track = "fp32") {
    return archive::Problem{.key = "a", .track = track, .features = std::move(features)};
  };
  const archive::Problem here = at({{"m", 1.0}, {"n", 0.5}});
  EXPECT_DOUBLE_EQ(distance_between(here, at({{"m", 1.3}, {"n", 0.1}})), 0.5);
  EXPECT_DOUBLE_EQ(distance_between(here, at({{"m", 0.7}, {"n", 0.9}})), 0.5);
  EXPECT_DOUBLE_EQ(distance_between(here, at({{"m", 1.0}, {"n", 0.5}}, "bf16")), 0.25);
  EXPECT_DOUBLE_EQ(distance_between(here, at({{"m", 1.6}, {"n", 0.5}}, "bf16")), 0.65);
  for (const nlohmann::json& other :
       {nlohmann::json{{"m", 1.0}}, nlohmann::json{{"m", 1.0}, {"k", 0.5}},
        nlohmann::json{{"m", 1.0}, {"n", "0.5"}}, nlohmann::json{{"m", nullptr}, {"n", 0.5}},
        nlohmann::json{{"m", 1.0}, {"n", 0.5}, {"k", 0}}, nlohmann::json::array({1.0, 0.5})}) {
    EXPECT_TRUE(std::isinf(distance_between(here, at(other)))) << other;
    EXPECT_TRUE(std::isinf(distance_between(at(other), here))) << other;
  }
}

// Problems by one feature, at chosen places, whose bests are configs of the space.
class NearPlaces : public Near {
 protected:
  SearchSpace space() const { return space_of(transposed(256, 384)); }

  static archive::Problem at(double place, char digit) {
    archive::Problem out{std::string(32, digit), std::string("problem ") + digit, "fp32"};
    out.features = {{"place", place}};
    return out;
  }

  static NearProblem searched(double place, char digit, const std::vector<KernelConfig>& best) {
    NearProblem out{at(place, digit)};
    for (const KernelConfig& config : best)
      out.best.push_back({config.text(), 10.0 + static_cast<double>(out.best.size())});
    return out;
  }

  // The problems' digits, in the order of what they give.
  std::string given(const std::vector<NearProblem>& problems) const {
    std::string out;
    for (const NearStart& start : starts_from(problems, at(0, 'f'), space()))
      out += start.origin["problem"].get<std::string>().front();
    return out;
  }
};

TEST_F(NearPlaces, TwoDoublingsOfEveryAxisAreNearAndFourAreNot) {
  const archive::Problem here = problem_of(space_of(product(256, 256, 256)), 'a');
  const auto distance = [&](int64_t size) {
    return distance_between(here, problem_of(space_of(product(size, size, size)), 'b'));
  };
  RecordProperty(
      "distances",
      nlohmann::json({distance(512), distance(1024), distance(2048), distance(4096)}).dump());
  const auto configs = configs_of(space(), "direct", 2);
  for (const double sign : {1, -1}) {
    EXPECT_EQ(given({searched(sign * distance(1024), 'b', {configs[0]}),
                     searched(sign * distance(4096), 'c', {configs[1]})}),
              "b");
    EXPECT_EQ(
        given({searched(sign * 0.6, 'b', {configs[0]}), searched(sign * 0.601, 'c', {configs[1]})}),
        "b");
  }
}

TEST_F(NearPlaces, TheNearestTwoGiveTheirFastest) {
  const auto configs = configs_of(space(), "direct", 6);
  const std::vector<NearProblem> problems = {searched(0.3, 'c', {configs[0], configs[1]}),
                                             searched(0.1, 'a', {configs[2], configs[3]}),
                                             searched(0.2, 'b', {configs[4], configs[5]})};
  EXPECT_EQ(given(problems), "ab");
  const auto found = starts_from(problems, at(0, 'f'), space());
  EXPECT_EQ(found.at(0).config, configs[2]);
  EXPECT_EQ(found.at(1).config, configs[4]);
}

TEST_F(NearPlaces, AProblemWithNothingToGiveTakesNoPlace) {
  const auto configs = configs_of(space(), "direct", 2);
  EXPECT_EQ(given({searched(0.1, 'a', {}), searched(0.2, 'b', {configs[0]}),
                   searched(0.3, 'c', {configs[1]})}),
            "bc");
}

TEST_F(NearPlaces, TheSameConfigIsNoneTwiceSoThatTheSecondGivesItsNext) {
  const auto configs = configs_of(space(), "direct", 2);
  const auto found = starts_from(
      std::vector{searched(0.1, 'a', {configs[0]}), searched(0.2, 'b', {configs[0], configs[1]})},
      at(0, 'f'), space());
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].config, configs[0]);
  EXPECT_EQ(found[1].config, configs[1]);
  EXPECT_EQ(found[1].origin["us"], 11.0);
}

TEST_F(NearPlaces, WhatNoFamilyHereKnowsIsPassedOver) {
  const auto configs = configs_of(space(), "direct", 1);
  NearProblem one = searched(0.1, 'a', {configs[0]});
  for (const char* text : {"matmul_cpu tile_m=4", "no_family x=1", "", "direct no_field=1"})
    one.best.insert(one.best.begin(), {text, 1});
  const auto found = starts_from(std::vector{one}, at(0, 'f'), space());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].config, configs[0]);
}

TEST_F(NearPlaces, AStartTellsWhereItIsFrom) {
  const auto configs = configs_of(space(), "direct", 1);
  NearProblem one = searched(0.25, 'a', {configs[0]});
  one.from = "a.wlx";
  one.problem.track = "fp32";
  one.problem.device = "another card";
  const auto found = starts_from(std::vector{one}, at(0, 'f'), space());
  ASSERT_EQ(found.size(), 1u);
  const nlohmann::json expected = {
      {"schedule", configs[0].text()},   {"was", configs[0].text()}, {"us", 10.0},
      {"problem", std::string(32, 'a')}, {"name", "problem a"},      {"track", "fp32"},
      {"device", "another card"},        {"distance", 0.25},         {"from", "a.wlx"}};
  EXPECT_EQ(found[0].origin, expected);
}

// Of many problems only the nearest are read, wherever they stand in the archive.
TEST_F(Near, TheNearestOfManyIsFoundBehindAllOthers) {
  const SearchSpace here = space_of(transposed(256, 400));
  const auto configs = configs_of(here, "direct", 12);
  for (int i = 0; i < 10; ++i)
    add(archive_, space_of(transposed(2048 + 64 * i, 400)), static_cast<char>('0' + i),
        {{configs[as_size(i)].text(), 10}});
  add(archive_, space_of(transposed(256, 384)), 'a', {{configs[11].text(), 10}});
  EXPECT_EQ(starts(archive_, here).at(0).config, configs[11]);
}

TEST_F(Near, ProblemsWithoutARightConfigLeaveTheirPlaceToOthers) {
  const SearchSpace here = space_of(transposed(256, 400));
  const auto configs = configs_of(here, "direct", 8);
  for (int i = 0; i < 6; ++i)
    add(archive_, space_of(transposed(256, 392 - i)), static_cast<char>('0' + i),
        {{configs[as_size(i)].text(), 0}});
  add(archive_, space_of(transposed(256, 300)), 'a', {{configs[7].text(), 10}});
  const auto found = starts(archive_, here);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].config, configs[7]);
}

TEST_F(Near, WhereTheFastestCannotBeCarriedOverTheNextIs) {
  const SearchSpace here = space_of(transposed(256, 400));
  const auto configs = configs_of(here, "direct", 1);
  add(archive_, space_of(transposed(256, 384)), 'a',
      {{"matmul_cpu tile_m=4", 1}, {configs[0].text(), 10}});
  const auto found = starts(archive_, here);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].config, configs[0]);
}

TEST_F(Near, OnesOwnRecordOfTheProblemIsNoneOfAnother) {
  const SearchSpace space = space_of(transposed(256, 384));
  add(archive_, space, 'f', {{configs_of(space, "direct", 1)[0].text(), 10}});
  EXPECT_TRUE(starts(archive_, space).empty());
}

// Records of other archives come in any order, and say what they like.
TEST_F(Near, OfForeignRecordsTheFastestRightOneIsTaken) {
  const SearchSpace space = space_of(transposed(256, 384));
  const auto configs = configs_of(space, "direct", 5);
  const archive::Problem problem = problem_of(space, 'c');
  std::vector<archive::Foreign<nlohmann::json>> records;
  const auto add_record = [&](const char* kind, const std::string& name, nlohmann::json record) {
    records.push_back({"x.wlx",
                       {{"kind", kind},
                        {"problem", problem.key},
                        {"name", name},
                        {"record", std::move(record)}}});
  };
  add_record("problem", "", problem);
  const auto candidate = [&](size_t number, std::optional<double> us) {
    archive::Candidate out{.problem = problem.key, .schedule = configs[number].text()};
    out.stage = archive::Stage::screened;
    out.median_us = us;
    return out;
  };
  archive::Candidate refused = candidate(0, 1);
  refused.stage = archive::Stage::refused;
  archive::Candidate written = candidate(1, 2);
  written.source = "a text";
  for (const archive::Candidate& one :
       {candidate(2, 30), refused, written, candidate(3, std::nullopt), candidate(4, 20)})
    add_record("candidate", one.schedule, one);
  ASSERT_TRUE(archive_.add_foreign(records));
  const auto found = starts(archive_, space);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].config, configs[4]);
  EXPECT_EQ(found[0].origin["from"], "x.wlx");
}

TEST_F(Near, OtherProblemsOfOtherArchivesAreForSearchesOfWhatIsNotKnownAlone) {
  const SearchSpace space = space_of(transposed(256, 384));
  const auto configs = configs_of(space, "direct", 1);
  Archive other = *Archive::open(folder_.path() / "other.sqlite");
  add(other, space, 'c', {{configs[0].text(), 10}});
  ASSERT_TRUE(archive::export_archive(other, folder_.path() / "x.wlx", ""));
  ASSERT_TRUE(archive::import_archive(archive_, folder_.path() / "x.wlx"));
  EXPECT_EQ(starts(archive_, space).size(), 1u);
  EXPECT_TRUE(starts(archive_, space, true).empty());
}
}  // namespace
}  // namespace warploom::search
