// Outcomes: a file goes out and comes back; what is broken, empty or foreign is refused.
#include <gtest/gtest.h>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include "../support/paths.h"
#include "base/casts.h"
#include "base/error.h"
#include "base/file.h"
#include "base/gzip.h"
#include "graph/track.h"
#include "kernels/family.h"
#include "recorded.h"
#include "search/action/action.h"
#include "search/policy/outcomes.h"
#include "search/policy/recorded_tree.h"
#include "search/policy/recorder.h"
#include "search/search_space.h"

namespace warploom::search {
namespace {
using nlohmann::json;

// Written, then read again.
Result<Outcomes> through_a_file(const Outcomes& outcomes) {
  const ScratchFolder folder("outcomes");
  const std::filesystem::path path = folder.path() / "outcomes.gz";
  WARPLOOM_CHECK(write_outcomes(path, outcomes));
  return read_outcomes(path);
}

ErrorCode code_of_file(const std::string& bytes) {
  const ScratchFolder folder("outcomes");
  const std::filesystem::path path = folder.path() / "outcomes.gz";
  EXPECT_TRUE(write_file(path, bytes));
  const auto read = read_outcomes(path);
  return read ? ErrorCode::kInternal : read.error().code;
}

ErrorCode code_of_json(const json& in) {
  const auto read = outcomes_from_json(in, "a test");
  return read ? ErrorCode::kInternal : read.error().code;
}

TEST(Outcomes, GoThroughAFileUnchanged) {
  Outcomes outcomes = made_up_outcomes();
  outcomes.problems[0].plans[1] = {.config = outcomes.problems[0].plans[1].config,
                                   .code = "resource-limit",
                                   .origin = Origin::backward,
                                   .parent = 0};
  outcomes.problems[1].ranges["direct"]["tile_x"] = {16, 64};
  const auto read = through_a_file(outcomes);
  ASSERT_TRUE(read) << describe(read.error());
  EXPECT_EQ(to_json(*read), to_json(outcomes));
  EXPECT_TRUE(read->problems[1].is_closed());
}

// Lists of operators and types grow: their numbers are this build's alone.
TEST(Outcomes, OperatorsAndTypesAreStoredByTheirNames) {
  const json in = to_json(made_up_outcomes());
  const json& graph = in["problems"][0]["graph"];
  EXPECT_EQ(graph["nodes"][0]["op"], "Transpose");
  EXPECT_EQ(graph["tensors"][0]["dtype"], "f32");
  for (const auto& [list, key] : {std::pair("nodes", "op"), std::pair("tensors", "dtype")}) {
    json unknown = in;
    unknown["problems"][0]["graph"][list][0][key] = "NoSuchThing";
    EXPECT_EQ(code_of_json(unknown), ErrorCode::kOutcomesInvalid);
  }
}

// What the repository ships is read by this program, and its plans are its families'.
TEST(Outcomes, ThatAreShippedAreReadAndCoveredByTheFamilies) {
  for (const char* file : {"bench/closed/cpu.gz", "bench/policy/outcomes.gz"}) {
    const auto shipped = read_outcomes(test::source_path(file));
    ASSERT_TRUE(shipped) << describe(shipped.error());
    for (const RecordedProblem& problem : shipped->problems) {
      const SearchSpace space =
          search_space_of({problem.graph, problem.track}, shipped->capabilities);
      std::set<std::string> families;
      for (const kernels::FamilyPtr& family : space.families)
        families.insert(family->name());
      for (const RecordedPlan& plan : problem.plans)
        EXPECT_TRUE(families.contains(plan.config.substr(0, plan.config.find(' '))))
            << file << " " << problem.name << " " << plan.config;
    }
  }
}

TEST(Outcomes, EqualOnesGiveEqualBytes) {
  EXPECT_EQ(gzipped("abc"), gzipped("abc"));
  EXPECT_EQ(gunzipped(gzipped("abc"), 3), "abc");
}

TEST(Outcomes, AMissingFileIsSaidSo) {
  const auto read = read_outcomes("/nowhere/outcomes.gz");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kFileMissing);
}

TEST(Outcomes, AnEmptyFileIsRefused) {
  EXPECT_EQ(code_of_file(""), ErrorCode::kOutcomesInvalid);
}

TEST(Outcomes, AFileThatIsCutOffIsRefusedWhereverItIsCut) {
  const auto cbor = json::to_cbor(to_json(made_up_outcomes()));
  const std::string whole = gzipped(std::string(cbor.begin(), cbor.end()));
  for (const size_t part : {size_t{1}, size_t{12}, whole.size() / 2, whole.size() - 1})
    EXPECT_EQ(code_of_file(whole.substr(0, part)), ErrorCode::kOutcomesInvalid) << part;
}

TEST(Outcomes, AForeignFileIsRefused) {
  EXPECT_EQ(code_of_file("an ONNX model, say"), ErrorCode::kOutcomesInvalid);
  EXPECT_EQ(code_of_file(gzipped("no CBOR at all")), ErrorCode::kOutcomesInvalid);
  const auto other = json::to_cbor({{"format", "another"}});
  const std::string bytes(other.begin(), other.end());
  EXPECT_EQ(code_of_file(gzipped(bytes)), ErrorCode::kOutcomesInvalid);
}

TEST(Outcomes, AFileThatUnpacksToTooMuchIsRefused) {
  EXPECT_FALSE(gunzipped(gzipped(std::string(1000, 'x')), 999));
}

// Version 1 had operators by their numbers in the list of its time.
TEST(Outcomes, AnotherVersionIsRefused) {
  for (const int version : {1, 3}) {
    json in = to_json(made_up_outcomes());
    in["version"] = version;
    EXPECT_EQ(code_of_json(in), ErrorCode::kOutcomesInvalid);
  }
}

TEST(Outcomes, AFieldOfTheWrongTypeIsRefused) {
  json in = to_json(made_up_outcomes());
  in["problems"][0]["plans"][0] = "tile_x=64";
  EXPECT_EQ(code_of_json(in), ErrorCode::kOutcomesInvalid);
}

TEST(Outcomes, APlanOfNoFamilyIsRefused) {
  json in = to_json(made_up_outcomes());
  in["problems"][0]["plans"][0][0] = "no_family tile_x=64";
  EXPECT_EQ(code_of_json(in), ErrorCode::kOutcomesInvalid);
}

TEST(Outcomes, APlanThatIsRecordedTwiceIsRefused) {
  json in = to_json(made_up_outcomes());
  auto& plans = in["problems"][0]["plans"];
  plans.push_back(plans[0]);
  EXPECT_EQ(code_of_json(in), ErrorCode::kOutcomesInvalid);
}

TEST(Outcomes, APlanOlderThanItsParentIsRefused) {
  json in = to_json(made_up_outcomes());
  in["problems"][0]["plans"][3][3] = 3;
  EXPECT_EQ(code_of_json(in), ErrorCode::kOutcomesInvalid);
}

TEST(Outcomes, ATimeThatIsNoneIsRefused) {
  json in = to_json(made_up_outcomes());
  in["problems"][0]["plans"][3][1] = -1.5;
  EXPECT_EQ(code_of_json(in), ErrorCode::kOutcomesInvalid);
}

TEST(Outcomes, AGraphWhoseNodesNameNoTensorIsRefused) {
  json in = to_json(made_up_outcomes());
  in["problems"][0]["graph"]["nodes"][0]["inputs"][0] = 1000;
  EXPECT_EQ(code_of_json(in), ErrorCode::kOutcomesInvalid);
}

TEST(Outcomes, AProblemsNameIsTakenOnce) {
  Outcomes outcomes = made_up_outcomes();
  const auto added = add_problem(outcomes, "small", {transposed(8, 8), Track::fp32}, Use::train);
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().code, ErrorCode::kOutcomesInvalid);
}

TEST(Recorder, AClosedSubSpaceHasEveryPlanOfItsRanges) {
  Outcomes outcomes{.machine = "none", .capabilities = recorded_target()};
  ASSERT_TRUE(add_problem(outcomes, "one", {transposed(256, 384), Track::fp32}, Use::hold_out));
  Recorder recorder(outcomes);
  recorder.enclose({.plans = 30, .seed = 3});
  const RecordedProblem& problem = outcomes.problems[0];
  ASSERT_TRUE(problem.is_closed());
  EXPECT_LE(problem.plans.size(), 30);
  size_t product = 1;
  for (const auto& [name, values] : problem.ranges.at("direct"))
    product *= values.size();
  EXPECT_GE(product, problem.plans.size());
  EXPECT_EQ(recorder.unknown(), problem.plans.size());
}

TEST(Recorder, TheSameSeedDrawsTheSamePlans) {
  const auto drawn = [](uint64_t seed) {
    Outcomes outcomes{.machine = "none", .capabilities = recorded_target()};
    EXPECT_TRUE(add_problem(outcomes, "one", {transposed(256, 384), Track::fp32}, Use::train));
    Recorder(outcomes).enclose({.plans = 30, .seed = seed});
    return to_json(outcomes);
  };
  EXPECT_EQ(drawn(3), drawn(3));
  EXPECT_NE(drawn(3), drawn(4));
}

TEST(Recorder, GrowsBackwardFromTheBestPlanAndForwardFromOthers) {
  Outcomes outcomes{.machine = "none", .capabilities = recorded_target()};
  ASSERT_TRUE(add_problem(outcomes, "one", {transposed(256, 384), Track::fp32}, Use::train));
  Recorder recorder(outcomes);
  recorder.grow({.plans = 24, .seed = 1});
  auto& plans = outcomes.problems[0].plans;
  double us = 100;
  for (RecordedPlan& plan : plans)
    plan.us = us--;  // the last one is the best
  const int best = as_int(plans.size()) - 1;
  recorder.grow({.plans = 24, .seed = 1});
  size_t backward = 0;
  size_t forward = 0;
  for (const RecordedPlan& plan : plans) {
    if (plan.origin == Origin::backward) {
      EXPECT_EQ(plan.parent, best);
      ++backward;
    }
    forward += plan.origin == Origin::forward ? 1 : 0;
  }
  EXPECT_GT(backward, 0);
  EXPECT_GT(forward, 0);
}

TEST(RecordedTree, EdgesAreActionsBetweenRecordedPlans) {
  const Outcomes outcomes = made_up_outcomes();
  const RecordedTree tree(outcomes.capabilities, outcomes.problems[0]);
  ASSERT_FALSE(tree.inner().empty());
  for (const int plan : tree.inner())
    for (const RecordedEdge& edge : tree.edges(plan)) {
      const auto then = carry_out(tree.space(), edge.action, tree.config(plan));
      ASSERT_TRUE(then);
      EXPECT_EQ(then->text(), tree.config(edge.to).text());
    }
}

TEST(RecordedTree, PlansWithoutOutcomesAreNoPartOfIt) {
  Outcomes outcomes = made_up_outcomes();
  for (RecordedPlan& plan : outcomes.problems[0].plans)
    plan.us = 0;
  EXPECT_EQ(trees_of(outcomes, Use::train).size(), 1);
}
}  // namespace
}  // namespace warploom::search
