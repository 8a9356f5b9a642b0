#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>
#include "../graph/builder.h"
#include "base/dtype.h"
#include "base/error.h"
#include "codegen/launch_list.h"
#include "codegen/memory_plan.h"
#include "graph/builder.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "kernels/family.h"
#include "plan/boundaries.h"
#include "plan/boundary_change.h"
#include "plan/fusion.h"
#include "plan/link.h"
#include "plan/region.h"
#include "random_graphs.h"
#include "target/capabilities.h"

namespace warploom::plan {
namespace {
using graph::Graph;
using graph::OpKind;
using graph::TensorId;

class Partitions : public testing::TestWithParam<int> {};

TEST_P(Partitions, ComputeRegionByRegionWhatTheWholeComputes) {
  const auto seed = static_cast<uint64_t>(GetParam());
  const Graph whole = random_graph(seed);
  const auto parts = partition(whole, random_rank(seed), {}, {}, random_work(seed));
  ASSERT_TRUE(parts) << describe(parts.error()) << graph::to_text(whole);
  std::set<int> nodes;
  for (const Region& region : parts->regions)
    nodes.insert(region.nodes.begin(), region.nodes.end());
  EXPECT_EQ(nodes.size(), whole.nodes.size());
  expect_computes_the_whole(whole, *parts, seed);
}

INSTANTIATE_TEST_SUITE_P(OfRandomGraphs, Partitions, testing::Range(0, 300));

TEST(JoinedPartitions, OfRandomGraphsHaveRegionsThatStoreSeveralTensors) {
  int several = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const auto parts = partition(random_graph(seed), random_rank(seed), {}, {}, random_work(seed));
    ASSERT_TRUE(parts);
    for (const Region& region : parts->regions)
      several += region.graph.outputs.size() > 1 ? 1 : 0;
  }
  EXPECT_GT(several, 30);
}

std::vector<std::string> names_of(const Partition& parts) {
  std::vector<std::string> out;
  for (const Region& region : parts.regions)
    out.push_back(region.graph.name + (region.alias ? " (alias)" : ""));
  return out;
}

using Names = std::vector<std::string>;

// Two layers x·w + b with gelu between, and softmax.
Graph network(bool constant_weights = false) {
  graph::Builder b("net");
  TensorId x = b.input("x", Dtype::f32, {8, 16});
  for (const int layer : {0, 1}) {
    const std::vector<double> zeros(256);
    const std::string name = fmt::format("w{}", layer);
    const std::string bias = fmt::format("b{}", layer);
    const TensorId w = constant_weights ? b.constant(name, Dtype::f32, {16, 16}, zeros)
                                        : b.input(name, Dtype::f32, {16, 16});
    const TensorId c = constant_weights
                           ? b.constant(bias, Dtype::f32, {16}, std::span(zeros).first(16))
                           : b.input(bias, Dtype::f32, {16});
    x = b.add(OpKind::Add, {b.add(OpKind::MatMul, {x, w}), c});
    if (layer == 0) x = b.add(OpKind::Gelu, {x});
  }
  b.output(b.add(OpKind::Softmax, {x}));
  return *graph::decompose(*b.finish());
}

TEST(Partition, EveryMatmulTakesWhatFollowsIt) {
  const auto parts = regions_of(network(), Track::fp32, *target::capabilities_of("cpu"));
  ASSERT_TRUE(parts) << describe(parts.error());
  EXPECT_EQ(names_of(*parts),
            (Names{"MatMul+Add+Gelu", "MatMul+Add", "ReduceMax+Sub+Exp+ReduceSum+Reciprocal+Mul"}));
}

TEST(Partition, AProductTakesTheRowsBehindItWholeOrNotAtAll) {
  for (const int64_t width : {256, 4096}) {
    graph::Builder b("rows");
    const TensorId y = b.add(OpKind::MatMul, {b.input("x", Dtype::bf16, {2048, 128}),
                                              b.input("w", Dtype::bf16, {128, width})});
    b.output(b.add(OpKind::LayerNormalization, {y, b.input("scale", Dtype::bf16, {width})}));
    const auto parts =
        regions_of(*graph::decompose(*b.finish()), Track::bf16, *target::capabilities_of("sm_90a"));
    ASSERT_TRUE(parts) << describe(parts.error());
    EXPECT_EQ(parts->regions.size(), width == 256 ? 1u : 2u)
        << fmt::format("{}", fmt::join(names_of(*parts), ", "));
  }
}

TEST(Partition, ConstantWeightsAreInputsOfTheirRegion) {
  const auto cpu = *target::capabilities_of("cpu");
  const auto given = regions_of(network(), Track::fp32, cpu);
  const auto constant = regions_of(network(true), Track::fp32, cpu);
  ASSERT_TRUE(given && constant);
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ(graph::to_text(given->regions[i].graph), graph::to_text(constant->regions[i].graph));
  // Equal layers all the same, but for what may be prepared: they are judged apart.
  EXPECT_TRUE(given->regions[0].constants.empty());
  EXPECT_EQ(constant->regions[0].constants, (std::set<std::string>{"x1", "x2"}));
  EXPECT_NE(given->regions[0].identity, constant->regions[0].identity);
  EXPECT_EQ(given->regions[2].identity, constant->regions[2].identity);
  const auto named = regions_of(network(), Track::fp32, cpu, {}, {"w0", "b0"});
  ASSERT_TRUE(named);
  EXPECT_EQ(named->regions[0].identity, constant->regions[0].identity);
  EXPECT_EQ(named->regions[1].identity, given->regions[1].identity);
}

TEST(Partition, BackwardWeightsOfTransposedConvolutionsAreLaidAnew) {
  graph::Builder b("transposed");
  const TensorId x = b.input("x", Dtype::f32, {2, 32, 64, 64});
  const TensorId w = b.input("w", Dtype::f32, {32, 64, 3, 3});
  b.output(b.add(OpKind::Relu, {b.add(OpKind::ConvTranspose, {x, w})}));
  for (const std::string target : {"cpu", "sm_90a"}) {
    const auto capabilities = *target::capabilities_of(target);
    const auto parts = regions_of(*graph::decompose(*b.finish()), Track::fp32, capabilities);
    ASSERT_TRUE(parts) << describe(parts.error());
    EXPECT_EQ(names_of(*parts), (Names{"Reshape+Transpose+Reshape+Slice", "Conv+Relu"}));
    const auto families =
        kernels::families_for({parts->regions.back().graph, Track::fp32}, capabilities);
    const std::string strict = target == "cpu" ? "conv_cpu" : "matmul_simt";
    EXPECT_EQ(std::ranges::count(families, strict, &kernels::Family::name), 1);
  }
}

TEST(Partition, AFallbackDoesNotTakeAMatmulFromItsFamilies) {
  graph::Builder b("prologue");
  const TensorId x = b.input("x", Dtype::f32, {8, 16});
  const TensorId w = b.input("w", Dtype::f32, {16, 16});
  b.output(b.add(OpKind::MatMul, {b.add(OpKind::Gelu, {x}), w}));
  const auto matmuls_or_anything = [](const Graph& region) -> std::optional<int> {
    return region.nodes[0].op == OpKind::MatMul ? 0 : kLastRank;
  };
  const auto parts = partition(*b.finish(), matmuls_or_anything);
  ASSERT_TRUE(parts);
  EXPECT_EQ(names_of(*parts), (Names{"Gelu", "MatMul"}));
}

// The smallest channel of a convolution's pixels: mma.sync holds rows whole, the faster warpgroup
// instructions alone do not.
TEST(Partition, AProductKeepsTheFastestUnitsThatItHas) {
  graph::Builder b("least");
  const TensorId x = b.input("x", Dtype::f32, {8, 64, 34, 34});
  const TensorId w = b.input("w", Dtype::f32, {128, 64, 3, 3});
  b.output(
      b.add(OpKind::ReduceMin, {b.add(OpKind::Conv, {x, w})}, {{"axes", std::vector<int64_t>{1}}}));
  const Graph graph = *graph::decompose(*b.finish());
  for (const auto& [target, names] :
       {std::pair("sm_90a", Names{"Conv", "ReduceMin"}), {"sm_80", Names{"Conv+ReduceMin"}}}) {
    const auto parts = regions_of(graph, Track::fp32, *target::capabilities_of(target));
    ASSERT_TRUE(parts) << describe(parts.error());
    EXPECT_EQ(names_of(*parts), names) << target;
  }
}

// On sm_90a the convolution has faster units than the family that holds pools: there fusion leaves
// them apart, and a search may join them.
TEST(Partition, APoolIsPartOfAConvolutionWhereNothingIsLostForIt) {
  graph::Builder b("pooled");
  const TensorId x = b.input("x", Dtype::f32, {8, 64, 34, 34});
  const TensorId w = b.input("w", Dtype::f32, {128, 64, 3, 3});
  const std::vector<int64_t> two = {2, 2};
  b.output(b.add(OpKind::MaxPool, {b.add(OpKind::Conv, {x, w})},
                 {{"kernel_shape", two}, {"strides", two}}));
  const Graph graph = *graph::decompose(*b.finish());
  for (const auto& [target, names] :
       {std::pair("sm_90a", Names{"Conv", "MaxPool"}), {"sm_80", Names{"Conv+MaxPool"}}}) {
    const auto parts = regions_of(graph, Track::fp32, *target::capabilities_of(target));
    ASSERT_TRUE(parts) << describe(parts.error());
    EXPECT_EQ(names_of(*parts), names) << target;
  }
  auto boundaries = boundaries_of(graph, Track::fp32, *target::capabilities_of("sm_90a"));
  ASSERT_TRUE(boundaries) << describe(boundaries.error());
  const auto options = boundaries->options({});
  EXPECT_TRUE(std::ranges::any_of(options, [](const BoundaryOption& one) {
    return !one.refusal && one.changes[0].kind == BoundaryKind::join_regions;
  }));
}

// Phases side by side are laid by families for products as they store; others would lose the
// product for it.
TEST(Partition, ATransposedConvolutionIsOneOfItsPhases) {
  graph::Builder b("upward");
  const TensorId x = b.input("x", Dtype::f32, {2, 32, 24, 24});
  const TensorId w = b.input("w", Dtype::f32, {32, 32, 4, 4});
  const std::vector<int64_t> two = {2, 2};
  b.output(b.add(OpKind::ConvTranspose, {x, w}, {{"strides", two}}));
  const Graph graph = *graph::decompose(*b.finish());
  for (const auto& [target, fused] : {std::pair("sm_90a", true), {"cpu", false}}) {
    const auto parts = regions_of(graph, Track::fp32, *target::capabilities_of(target));
    ASSERT_TRUE(parts) << describe(parts.error());
    const Names names = names_of(*parts);
    EXPECT_EQ(std::ranges::count(names, "Conv+Reshape+Transpose+Reshape"), fused) << target;
    EXPECT_EQ(std::ranges::count(names, "Conv+Reshape"), !fused) << target;
  }
}

TEST(Partition, AViewThatNothingTakesInIsTheMemoryOfWhatItViews) {
  graph::Builder b("cut");
  const std::array<int64_t, 2> shape = {6, 8};  // cuts the axes of [8, 6] unevenly
  b.output(b.add(OpKind::Reshape, {b.add(OpKind::Exp, {b.input("x", Dtype::f32, {8, 6})}),
                                   b.integers("shape", shape)}));
  const auto parts = regions_of(*b.finish(), Track::fp32, *target::capabilities_of("cpu"));
  ASSERT_TRUE(parts) << describe(parts.error());
  EXPECT_EQ(names_of(*parts), (Names{"Exp", "Reshape (alias)"}));
  EXPECT_EQ(parts->storage.at("Exp_0_out"), "Reshape_1_out");  // the output's own memory
}

// Tanh(x), summed over rows and over columns, by families that take a reduction and pointwise
// operators.
TEST(Partition, CheapOperatorsOfInputsAreComputedByEveryReader) {
  graph::Builder b("twice");
  const TensorId x = b.input("x", Dtype::f32, {8, 8});
  const TensorId y = b.add(OpKind::Tanh, {x});
  for (const int64_t axis : {0, 1})
    b.output(b.add(OpKind::ReduceSum, {y}, {{"axes", std::vector<int64_t>{axis}}}));
  const auto parts = partition(*b.finish(), [](const Graph&) { return 0; });
  ASSERT_TRUE(parts) << describe(parts.error());
  EXPECT_EQ(names_of(*parts), (Names{"Tanh+ReduceSum", "Tanh+ReduceSum"}));
}

TEST(Partition, ThePlacesOfALongRowAreNoWeight) {
  graph::Builder b("vocabulary");
  b.output(b.add(OpKind::ArgMax, {b.input("x", Dtype::f32, {2, 128256})}, {{"axis", int64_t{1}}}));
  for (const std::string target : {"cpu", "sm_90a"}) {
    const auto capabilities = *target::capabilities_of(target);
    const auto parts =
        regions_of(*lower_for_target(*b.finish(), capabilities), Track::fp32, capabilities);
    ASSERT_TRUE(parts) << describe(parts.error());
    EXPECT_EQ(parts->regions.size(), 1u);
  }
}

// A bias of one element may be learned, and another another time; an exponent is known.
TEST(Partition, ANumberWithAxesIsLoadedWhereKnowingItIsOfNoUse) {
  for (const auto& [op, shape, loaded] : {std::tuple(OpKind::Add, graph::Shape{1}, true),
                                          std::tuple(OpKind::Add, graph::Shape{}, false),
                                          std::tuple(OpKind::Pow, graph::Shape{1}, false)}) {
    graph::Builder b("number");
    const TensorId x = b.input("x", Dtype::f32, {4, 8});
    const TensorId number = b.constant("number", Dtype::f32, shape, std::vector<double>{2});
    b.output(b.add(op, {x, number}));
    const auto graph = b.finish();
    ASSERT_TRUE(graph);
    const auto parts = partition(*graph, [](const Graph&) { return 0; });
    ASSERT_TRUE(parts);
    EXPECT_EQ(parts->regions[0].graph.inputs.size(), loaded ? 2 : 1) << name_of(op);
    EXPECT_EQ(parts->trivial(*graph), !loaded) << name_of(op);
  }
}

TEST(Partition, WhatNoFamilyCoversIsNamed) {
  const auto parts = partition(network(), [](const Graph&) { return std::nullopt; });
  ASSERT_FALSE(parts);
  EXPECT_EQ(parts.error().code, ErrorCode::kNoSchedule);
  EXPECT_NE(parts.error().place.find("MatMul"), std::string::npos) << parts.error().place;
}

TEST(Partition, AnOutputOfNoElementsIsSaidSo) {
  graph::Builder b("nothing");
  b.output(b.add(OpKind::Relu, {b.input("x", Dtype::f32, {0, 3})}));
  const auto parts = partition(*b.finish(), [](const Graph&) { return std::nullopt; });
  ASSERT_FALSE(parts);
  EXPECT_EQ(parts.error().expected, "an output of 1 element or more");
}

TEST(Partition, ATensorOfNoElementsThatNoFamilyTakesIsSaidSo) {
  graph::Builder b("nothing");
  b.output(
      b.add(OpKind::MatMul, {b.input("x", Dtype::f32, {2, 0}), b.input("w", Dtype::f32, {0, 3})}));
  const auto parts = partition(*b.finish(), [](const Graph&) { return std::nullopt; });
  ASSERT_FALSE(parts);
  EXPECT_EQ(parts.error().expected, "tensors of 1 element or more");
}

// A chain of four Tanh, a region and a kernel each.
struct Chain {
  Graph graph;
  Partition parts;
  LaunchList list;
};

Chain chain_of_four() {
  graph::Builder b("chain");
  TensorId x = b.input("x", Dtype::f32, {64});
  for (int i = 0; i < 4; ++i)
    x = b.add(OpKind::Tanh, {x});
  b.output(x);
  Chain chain{*b.finish(), {}, {}};
  chain.parts = *partition(chain.graph, [](const Graph& region) -> std::optional<int> {
    return region.nodes.size() == 1 ? std::optional(0) : std::nullopt;
  });
  LaunchList one{.engine = Engine::cpu,
                 .inputs = {{"x0", Dtype::f32, {64}}},
                 .outputs = {{"y", Dtype::f32, {64}}}};
  one.kernels = {{.name = "tanh_all",
                  .source = "void tanh_all() { not_tanh_all(); }",
                  .args = {{"x0"}, {"y"}},
                  .symbol_at = {5}}};
  LaunchList other = one;
  other.kernels[0].source += "// another";
  chain.list = link(chain.graph, chain.parts, {&one, &other, &one, &other});
  return chain;
}

TEST(Plan, SpreadsScansOnCpusAlone) {  // on a GPU blocks look back at each other
  graph::Builder b("lines");
  const TensorId x = b.input("x", Dtype::f32, {2, 1 << 18});
  b.output(b.add(graph::OpKind::CumSum, {x, b.integers("axis", std::vector<int64_t>{1})}));
  const Graph given = *b.finish();
  const auto regions = [&](const char* target, int num_sms) {
    auto capabilities = *target::capabilities_of(target);
    capabilities.num_sms = num_sms;
    return regions_of(*lower_for_target(given, capabilities), Track::fp32, capabilities)
        ->regions.size();
  };
  EXPECT_EQ(regions("sm_90a", 132), 1u);
  EXPECT_GT(regions("cpu", 16), 1u);
}

TEST(Plan, AConstantThatIsNoInputIsRefused) {
  graph::Builder b("sum");
  const TensorId x = b.input("x", Dtype::f32, {4});
  b.output(b.add(graph::OpKind::Add, {x, x}));
  const auto capabilities = *target::capabilities_of("sm_90a");
  const auto refused = regions_of(*b.finish(), Track::fp32, capabilities, {}, {"w"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUsage);
  EXPECT_EQ(refused.error().expected, "x");
  EXPECT_EQ(refused.error().found, "w");
}

TEST(Link, WorkspacesWhoseLivesDoNotMeetShareTheArena) {
  const LaunchList list = chain_of_four().list;
  EXPECT_EQ(list.workspaces.size(), 3u);
  EXPECT_EQ(memory_plan(list).arena_bytes, 2 * 64 * 4);
  ASSERT_EQ(list.kernels.size(), 4u);
  for (const Kernel& kernel : list.kernels)
    EXPECT_NE(kernel.args[0].buffer, kernel.args[1].buffer);
  EXPECT_EQ(list.kernels[0].args[0].buffer, "x");
  EXPECT_EQ(list.kernels[3].args[1].buffer, list.outputs[0].name);
}

TEST(Link, KernelsOfDifferentTextsHaveDifferentNames) {
  const LaunchList list = chain_of_four().list;
  EXPECT_EQ(list.kernels[0].name, "tanh_all");
  EXPECT_EQ(list.kernels[1].name, "tanh_all_2");
  EXPECT_EQ(list.kernels[1].source, "void tanh_all_2() { not_tanh_all(); }// another");
  EXPECT_EQ(list.kernels[2].source, list.kernels[0].source);
}
}  // namespace
}  // namespace warploom::plan
