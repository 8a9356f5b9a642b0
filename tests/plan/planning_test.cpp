// What planning costs, counted in what it asks and reads, never in seconds; and who may end it.
#include <gtest/gtest.h>
#include <array>
#include <atomic>
#include <cstdint>
#include <iterator>
#include <optional>
#include "../graph/builder.h"
#include "base/dtype.h"
#include "base/error.h"
#include "graph/builder.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "kernels/family.h"  // IWYU pragma: keep (what a rank asks)
#include "loopnest/loop_nest.h"
#include "plan/fusion.h"
#include "plan/limits.h"
#include "plan/region.h"
#include "planned_nets.h"
#include "target/capabilities.h"

namespace warploom::plan {
namespace {
using graph::Graph, graph::OpKind, graph::TensorId;

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

TEST(Planning, CommonSubexpressionsArePlannedOnce) {
  graph::Builder b("silu");
  const auto x = b.input("x", Dtype::f32, {1, 3, 32, 32});
  const auto w = b.input("w", Dtype::f32, {8, 3, 3, 3});
  const auto one = b.add(graph::OpKind::Conv, {x, w});
  const auto other = b.add(graph::OpKind::Conv, {x, w});
  b.output(b.add(graph::OpKind::Mul, {one, b.add(graph::OpKind::Sigmoid, {other})}));
  const auto capabilities = *target::capabilities_of("cpu");
  const auto parts =
      regions_of(*lower_for_target(*b.finish(), capabilities), Track::fp32, capabilities);
  ASSERT_TRUE(parts) << describe(parts.error());
  int convolutions = 0;
  for (const Region& region : parts->regions)
    for (const auto& node : region.graph.nodes)
      convolutions += node.op == graph::OpKind::Conv;
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

TEST(Planning, ThatHasHadItsTimeLeavesRegionsAsTheyAre) {
  const Graph graph = residual_layers(6);
  const auto anything = [](const Graph&) { return std::optional(0); };
  const auto whole = partition(graph, anything);
  const auto apart = partition(graph, anything, {.until = Limits::Clock::now()});
  ASSERT_TRUE(whole && apart);
  EXPECT_LT(whole->regions.size(), graph.nodes.size());
  EXPECT_EQ(apart->regions.size(), graph.nodes.size());
}

// A least of rows that a grid of columns reads: loops would look through a row for each of them.
TEST(Planning, AReductionThatManyElementsReadIsNotLeftToLoopsOnAGpu) {
  graph::Builder b("broadcast");
  const TensorId x = b.input("x", Dtype::f32, {64, 4096});
  const TensorId bias = b.input("bias", Dtype::f32, {512, 1});
  const TensorId axis = b.constant("axis", Dtype::i64, {1}, std::array{1.0});
  const TensorId least = b.add(OpKind::ReduceMin, {x, axis}, {{"keepdims", int64_t{0}}});
  b.output(b.add(OpKind::Add, {least, bias}));
  const Graph graph = *graph::decompose(*b.finish());
  const auto on_gpu = regions_of(graph, Track::fp32, *target::capabilities_of("sm_90a"));
  ASSERT_TRUE(on_gpu) << describe(on_gpu.error());
  EXPECT_EQ(on_gpu->regions.size(), 2U);
}

// Where a family keeps the row, it is one kernel.
TEST(Planning, ARowsNormIsOneRegionOnAGpu) {
  graph::Builder b("norm");
  const TensorId x = b.input("x", Dtype::f32, {64, 4096});
  b.output(b.add(OpKind::Softmax, {x}, {{"axis", int64_t{-1}}}));
  const Graph graph = *graph::decompose(*b.finish());
  const auto on_gpu = regions_of(graph, Track::fp32, *target::capabilities_of("sm_90a"));
  ASSERT_TRUE(on_gpu) << describe(on_gpu.error());
  EXPECT_EQ(on_gpu->regions.size(), 1U);
}
}  // namespace
}  // namespace warploom::plan
