// What planning costs, counted in what it asks and reads, never in seconds; and who may end it.
#include <gtest/gtest.h>
#include "planned_nets.h"
#include "search/explore.h"

namespace warploom::search {
namespace {
using graph::Graph;

// What a partition asked families, by a rank that reads nests as families do.
struct Asked {
  int64_t nodes = 0;      // of all regions that were asked about
  int64_t places = 0;     // read for their nests
  int64_t too_large = 0;  // regions
};

Asked asked_for(const Graph& graph) {
  Asked asked;
  const auto parts = partition(graph, [&](const Graph& region) -> std::optional<int> {
    kernels::ReadWork work;
    const auto nests = kernels::nests_of(region, &work);
    asked.nodes += std::ssize(region.nodes);
    asked.places += work.places;
    asked.too_large += work.too_large;
    if (region.nodes.size() == 1) return 0;
    return nests.size() == 1 ? std::optional(0) : std::nullopt;
  });
  EXPECT_TRUE(parts) << describe(parts.error());
  return asked;
}

// Regions have at most 64 nodes, and a node is asked about with those around it.
constexpr int64_t kOfANode = 64 * 16;

TEST(Planning, ReadsNoMoreOfResidualBlocksThanOfTheirNodes) {
  for (const int blocks : {5, 8, 10, 12, 13, 24, 64}) {
    const Graph graph = residual_blocks(blocks);
    const Asked asked = asked_for(graph);
    EXPECT_LE(asked.nodes, kOfANode * std::ssize(graph.nodes)) << blocks;
    EXPECT_LE(asked.places, kOfANode * std::ssize(graph.nodes) + 20'000) << blocks;
  }
}

TEST(Planning, ReadsNoMoreOfResidualLayersThanOfTheirNodes) {
  for (const int layers : {8, 12, 16, 21, 40}) {
    const Graph graph = residual_layers(layers);
    const Asked asked = asked_for(graph);
    EXPECT_LE(asked.places, kOfANode * std::ssize(graph.nodes) + 20'000) << layers;
  }
}

TEST(Planning, ReadsNoMoreOfDenseBlocksThanOfTheirNodes) {
  for (const int layers : {4, 12, 24}) {
    const Graph graph = dense_block(layers);
    const Asked asked = asked_for(graph);
    EXPECT_LE(asked.places, kOfANode * std::ssize(graph.nodes) + 40'000) << layers;
  }
}

TEST(Planning, ReadsEveryValueOfAChainOnce) {
  for (const int steps : {4, 16, 60, 200}) {
    kernels::ReadWork work;
    const Graph graph = doubling_chain(steps);
    const auto nests = kernels::nests_of(graph, &work);
    ASSERT_EQ(nests.size(), 1U) << steps;
    EXPECT_EQ(work.places, std::ssize(graph.nodes) + 1);
    EXPECT_EQ(std::ssize(nests[0].values), std::ssize(graph.nodes) + 1);
  }
}

TEST(Planning, IntegersOfAChainAreBoundedInOneLook) {
  kernels::ReadWork work;
  kernels::nests_of(doubling_chain(60, Dtype::u8), &work);
  EXPECT_LE(work.places, 200);
}

TEST(Planning, ATooLargeNestIsNoneAndCostsItsLimit) {
  for (const int blocks : {10, 30, 200}) {
    kernels::ReadWork work;
    const Graph graph = residual_blocks(blocks);
    EXPECT_TRUE(kernels::nests_of(graph, &work).empty()) << blocks;
    EXPECT_TRUE(work.too_large) << blocks;
    EXPECT_LE(work.places, 16 * std::ssize(graph.nodes) + 8192 + 1) << blocks;
  }
}

TEST(Planning, ADeepChainTakesNoMoreStackThanTheLimit) {
  kernels::ReadWork work;
  EXPECT_TRUE(kernels::nests_of(deep_chain(5'000), &work).empty());
  EXPECT_TRUE(work.too_large);
  EXPECT_LE(work.places, 2000);
}

// Whole: partition, families, catalogues and what they propose, for every target.
TEST(Planning, OfNetworksThatReadValuesTwiceEndsInProposals) {
  for (const std::string target : {"cpu", "sm_90a"})
    for (const Graph& given : {residual_blocks(10), residual_layers(12), dense_block(6),
                               doubling_chain(60), centred_rows(12), deep_chain(200)}) {
      const auto capabilities = *target::capabilities_of(target);
      const Graph graph = *planned(given, capabilities);
      const auto parts = regions_of(graph, Track::fp32, capabilities);
      ASSERT_TRUE(parts) << describe(parts.error());
      (void)outline_of({graph, Track::fp32}, capabilities, 1);
      std::set<std::string> seen;
      for (const Region& region : parts->regions) {
        if (region.alias || !seen.insert(region.identity).second) continue;
        const SearchSpace catalogue = catalogue_of({region.graph, Track::fp32}, capabilities);
        const auto first = SearchStrategy(catalogue, Strategy::enumerate, 1).next();
        ASSERT_TRUE(first) << target << " " << graph::to_text(region.graph);
        const auto list = catalogue.build(*first);
        EXPECT_TRUE(list) << describe(list.error());
      }
    }
}

TEST(Planning, CommonSubexpressionsArePlannedOnce) {
  graph::Builder b("silu");
  const auto x = b.input("x", Dtype::f32, {1, 3, 32, 32});
  const auto w = b.input("w", Dtype::f32, {8, 3, 3, 3});
  const auto one = b.add(graph::OpKind::Conv, {x, w});
  const auto other = b.add(graph::OpKind::Conv, {x, w});
  b.output(b.add(graph::OpKind::Mul, {one, b.add(graph::OpKind::Sigmoid, {other})}));
  const auto capabilities = *target::capabilities_of("cpu");
  const auto parts = regions_of(*planned(*b.finish(), capabilities), Track::fp32, capabilities);
  ASSERT_TRUE(parts) << describe(parts.error());
  int convolutions = 0;
  for (const Region& region : parts->regions)
    for (const auto& node : region.graph.nodes) convolutions += node.op == graph::OpKind::Conv;
  EXPECT_EQ(convolutions, 1);
}

TEST(Planning, EndsAtAnInterruptWhileFamiliesAreAsked) {
  std::atomic<bool> flag = false;
  int asked = 0;
  const auto rank = [&](const Graph& region) -> std::optional<int> {
    if (++asked == 5) flag = true;
    return region.nodes.size() == 1 ? std::optional(0) : std::nullopt;
  };
  const auto parts = partition(residual_blocks(12), rank, {.interrupted = &flag});
  ASSERT_FALSE(parts);
  EXPECT_EQ(parts.error().code, ErrorCode::kInterrupted);
  EXPECT_EQ(asked, 5);
}

TEST(Planning, EndsAtAnInterruptBeforeAnythingIsSearched) {
  std::atomic<bool> flag = true;
  const Options options = {.target = "cpu", .budget_seconds = 1000, .interrupted = &flag};
  const auto outcome = optimize(residual_layers(6), options);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, ErrorCode::kInterrupted);
  EXPECT_NE(outcome.error().message.find("plan"), std::string::npos) << outcome.error().message;
}

TEST(Planning, ThatHasHadItsTimeLeavesRegionsAsTheyAre) {
  const Graph graph = residual_layers(6);
  const auto anything = [](const Graph&) { return std::optional(0); };
  const auto whole = partition(graph, anything);
  const auto apart = partition(graph, anything, {.until = Limits::Clock::now()});
  ASSERT_TRUE(whole && apart);
  EXPECT_LT(whole->regions.size(), graph.nodes.size());
  EXPECT_EQ(apart->regions.size(), graph.nodes.size());
}

// Predictions: on a GPU, where there is a cost model.
struct Predicted {
  SearchSpace catalogue;
  std::atomic<int> asked = 0;

  explicit Predicted(const std::function<void(int)>& at = [](int) {})
      : catalogue(
            catalogue_of({residual_layers(1), Track::fp32}, *target::capabilities_of("sm_90a"))) {
    catalogue.predict = [this, at](const kernels::KernelConfig&) -> Result<double> {
      at(++asked);
      return 1.0;
    };
  }
};

TEST(Planning, PredictsNothingAfterAnInterrupt) {
  std::atomic<bool> flag = false;
  Predicted all;
  (void)SearchStrategy(all.catalogue, Strategy::beam, 1);
  Predicted few([&](int number) { flag = flag || number >= 3; });
  SearchStrategy proposer(few.catalogue, Strategy::beam, 1, {.interrupted = &flag});
  EXPECT_GT(all.asked, 100);
  EXPECT_LT(few.asked, 100);  // those that other threads had begun
  EXPECT_TRUE(proposer.next());
}

TEST(Planning, PredictsNothingOnceItHasHadItsTime) {
  Predicted none;
  SearchStrategy proposer(none.catalogue, Strategy::beam, 1, {.until = Limits::Clock::now()});
  EXPECT_EQ(none.asked, 0);
  EXPECT_TRUE(proposer.next());
}
}  // namespace
}  // namespace warploom::search
