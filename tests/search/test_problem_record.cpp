// What the archive keeps of a problem for other searches, and what is read back of it.
#include <gtest/gtest.h>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>
#include "../graph/builder.h"
#include "archive/archive.h"
#include "base/casts.h"
#include "base/dtype.h"
#include "base/error.h"
#include "graph/graph.h"
#include "kernels/family.h"
#include "near_fixture.h"
#include "recorded.h"
#include "search/policy/features.h"
#include "search/problem_record.h"
#include "search/search_space.h"
#include "target/capabilities.h"

namespace warploom::search {
namespace {
using ProblemRecord = Near;

TEST_F(ProblemRecord, ARecordHasTheFeaturesOfRegionAndTargetAlone) {
  const archive::Problem problem = problem_of(space_of(softmax(64, 96)), 'a');
  size_t expected = 0;
  for (const FeatureRow& row : kFeatureRows) {
    const std::string group(row.group);
    const bool is_its = group == "region" || group == "target";
    EXPECT_EQ(problem.features.contains(row.name), is_its) << row.name;
    expected += is_its ? 1 : 0;
  }
  EXPECT_EQ(problem.features.size(), expected);
}

TEST_F(ProblemRecord, ConstantsOfFourKilobytesAreKeptAndOfMoreAreNot) {
  for (const int64_t count : {1024, 1025}) {
    graph::Builder b("scaled");
    const auto x = b.input("x", Dtype::f32, {64, count});
    const std::vector<double> ones(as_size(count), 1);
    b.output(b.add(graph::OpKind::Mul, {x, b.constant("w", Dtype::f32, {count}, ones)}));
    const SearchSpace space = space_of(*graph::decompose(*b.finish()));
    const auto record = nlohmann::json::parse(nlohmann::json(problem_of(space, 'a')).dump());
    const auto region = region_of(record.get<archive::Problem>());
    ASSERT_TRUE(region);
    EXPECT_EQ(region->graph.inputs.size(), count > 1024 ? 2u : 1u);
  }
}

TEST_F(ProblemRecord, ARecordThatMakesNoSenseHasNoRegion) {
  graph::Builder b("scaled");
  const auto x = b.input("x", Dtype::f32, {4, 8});
  const std::vector<double> ones(8, 1);
  b.output(b.add(graph::OpKind::Mul, {x, b.constant("w", Dtype::f32, {8}, ones)}));
  const SearchSpace space = space_of(*graph::decompose(*b.finish()));
  const archive::Problem whole = problem_of(space, 'a');
  ASSERT_TRUE(region_of(whole));
  const auto constant = [](archive::Problem& of) -> nlohmann::json& {
    for (nlohmann::json& tensor : of.graph["tensors"])
      if (tensor.contains("constant")) return tensor;
    ADD_FAILURE() << "no constant";
    return of.graph;
  };
  std::vector<archive::Problem> broken(6, whole);
  broken[0].track = "no track";
  broken[1].graph = "a text";
  broken[2].graph.erase("tensors");
  constant(broken[3])["constant"] = nlohmann::json::binary({1, 2, 3});
  constant(broken[4])["constant"] = {{"bytes", "text"}};
  broken[5].graph["tensors"][0]["shape"] = {-4, 8};
  for (size_t i = 0; i < broken.size(); ++i)
    EXPECT_FALSE(region_of(broken[i])) << i;
  archive::Problem nowhere = whole;
  nowhere.capabilities = {{"arch", 3}};
  EXPECT_FALSE(capabilities_of(nowhere));
  nowhere.capabilities = "a text";
  EXPECT_FALSE(capabilities_of(nowhere));
}

TEST_F(ProblemRecord, AProblemsRecordGivesItsRegionBack) {
  const SearchSpace space = space_of(softmax(64, 96));
  const archive::Problem problem = problem_of(space, 'a');
  const auto text = nlohmann::json(problem).dump();
  const auto read = nlohmann::json::parse(text).get<archive::Problem>();
  const auto region = region_of(read);
  ASSERT_TRUE(region);
  EXPECT_EQ(graph::to_text(region->graph), graph::to_text(space.region.graph));
  EXPECT_EQ(capabilities_of(read)->num_sms, recorded_target().num_sms);
}

TEST_F(ProblemRecord, LargeConstantsAreInputsInARecord) {
  graph::Builder b("scaled");
  const auto x = b.input("x", Dtype::f32, {64, 2048});
  const std::vector<double> ones(2048, 1);
  b.output(b.add(graph::OpKind::Mul, {x, b.constant("w", Dtype::f32, {2048}, ones)}));
  const SearchSpace space = space_of(*graph::decompose(*b.finish()));
  const auto region = region_of(problem_of(space, 'a'));
  ASSERT_TRUE(region);
  EXPECT_EQ(region->graph.inputs.size(), 2u);
}

TEST_F(ProblemRecord, AGraphWhoseShapesDoNotFollowIsNone) {
  archive::Problem problem = problem_of(space_of(softmax(64, 96)), 'a');
  problem.graph["tensors"].back()["shape"] = {64, 97};
  EXPECT_FALSE(region_of(problem));
  problem.graph["nodes"][0]["outputs"] = {99};
  EXPECT_FALSE(region_of(problem));
}
}  // namespace
}  // namespace warploom::search
