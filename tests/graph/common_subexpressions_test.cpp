#include "graph/common_subexpressions.h"
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "base/random.h"
#include "builder.h"
#include "graph/graph.h"
#include "graph/reference.h"

namespace warploom::graph {
namespace {
using Values = std::vector<std::vector<double>>;

int64_t count(const Graph& graph, OpKind op) {
  return std::ranges::count(graph.nodes, op, &Node::op);
}

Values evaluated(const Graph& graph, uint64_t seed) {
  Random random(seed, "inputs");
  std::vector<std::vector<std::byte>> inputs;
  for (const TensorId id : graph.inputs) {
    const Tensor& tensor = graph.tensor(id);
    auto& bytes = inputs.emplace_back(static_cast<size_t>(byte_count(tensor)));
    for (int64_t i = 0; i < element_count(tensor.shape); ++i)
      store_from_double(tensor.dtype, bytes.data(), static_cast<size_t>(i), random.normal());
  }
  std::vector<Bytes> views(inputs.begin(), inputs.end());
  const auto found = evaluate(graph, views, 1);
  EXPECT_TRUE(found) << describe(found.error());
  return found.value_or(Values{});
}

std::vector<std::string> output_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const TensorId id : graph.outputs)
    names.push_back(graph.tensor(id).name);
  return names;
}

// Random graphs of a few operators over few tensors, so that much of them is equal.
Graph random_graph(uint64_t seed, bool twice) {
  Random random(seed, "common");
  Builder b("random");
  std::vector<TensorId> values;
  for (int i = 0; i < 2; ++i)
    values.push_back(b.input(fmt::format("in{}", i), Dtype::f64, {3, 3}));
  const std::vector<double> table = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  for (const std::string name : {"w", "same_as_w"})
    values.push_back(b.constant(name, Dtype::f64, {3, 3}, table));
  for (const std::string name : {"half", "same_as_half"})
    values.push_back(b.constant(name, Dtype::f64, {}, std::vector{0.5}));
  const size_t given = values.size();
  for (int n = 0; n < 16; ++n) {
    const auto pick = [&] { return values[random.below(values.size())]; };
    constexpr std::array kUnary = {OpKind::Tanh, OpKind::Neg};
    constexpr std::array kBinary = {OpKind::Add, OpKind::Mul, OpKind::Sub};
    const bool unary = random.below(2) == 0;
    const OpKind op = unary ? kUnary[random.below(2)] : kBinary[random.below(3)];
    const std::vector<TensorId> from = unary ? std::vector{pick()} : std::vector{pick(), pick()};
    for (int copy = 0; copy < (twice ? 2 : 1); ++copy)
      values.push_back(b.add(op, from));
  }
  for (size_t i = given; i < values.size(); ++i)
    if (i + 1 == values.size() || random.below(3) == 0) b.output(values[i]);
  return *simplify(*b.finish());
}

class CommonSubexpressions : public testing::TestWithParam<int> {};

TEST_P(CommonSubexpressions, MergedComputeWhatTheyDid) {
  const auto seed = static_cast<uint64_t>(GetParam());
  for (const bool twice : {false, true}) {
    const Graph graph = random_graph(seed, twice);
    const auto merged = merge_common(graph);
    ASSERT_TRUE(merged) << describe(merged.error());
    EXPECT_EQ(evaluated(*merged, seed), evaluated(graph, seed)) << to_text(graph);
    EXPECT_EQ(output_names(*merged), output_names(graph));
    EXPECT_LE(merged->nodes.size(), graph.nodes.size());
    EXPECT_TRUE(infer(*merged)) << to_text(*merged);
    std::set<std::pair<OpKind, std::vector<TensorId>>> seen;  // no two are equal any more
    for (const Node& node : merged->nodes) {
      const bool fresh = seen.emplace(node.op, node.inputs).second;
      EXPECT_TRUE(node.op == OpKind::Identity || fresh) << to_text(*merged);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(OfRandomGraphs, CommonSubexpressions, testing::Range(0, 200));

TEST(MergeCommon, WholeExpressionsBecomeOne) {
  Builder b("twice");
  const TensorId x = b.input("x", Dtype::f32, {4, 8});
  const TensorId w = b.input("w", Dtype::f32, {8, 2});
  const auto half = [&] { return b.add(OpKind::Relu, {b.add(OpKind::MatMul, {x, w})}); };
  const TensorId one = half();
  const TensorId other = half();
  b.output(b.add(OpKind::Mul, {one, b.add(OpKind::Sigmoid, {other})}));
  const Graph merged = *merge_common(*b.finish());
  EXPECT_EQ(merged.nodes.size(), 4U) << to_text(merged);
  EXPECT_EQ(count(merged, OpKind::MatMul), 1);
}

TEST(MergeCommon, SumsAndProductsAreEqualEitherWayRoundAndDifferencesAreNot) {
  for (const auto& [op, nodes] : {std::pair(OpKind::Add, 2U), std::pair(OpKind::Sub, 3U)}) {
    Builder b("round");
    const TensorId x = b.input("x", Dtype::f32, {4});
    const TensorId y = b.input("y", Dtype::f32, {4});
    b.output(b.add(OpKind::Div, {b.add(op, {x, y}), b.add(op, {y, x})}));
    EXPECT_EQ(merge_common(*b.finish())->nodes.size(), nodes);
  }
}

TEST(MergeCommon, OtherAttributesAreOtherNodes) {
  Builder b("attributes");
  const TensorId x = b.input("x", Dtype::f32, {4, 4});
  const auto sum = [&](int64_t axis) {
    return b.add(OpKind::ReduceSum, {x},
                 {{"axes", std::vector<int64_t>{axis}}, {"keepdims", int64_t{1}}});
  };
  b.output(b.add(OpKind::Add, {sum(0), sum(1)}));
  EXPECT_EQ(count(*merge_common(*b.finish()), OpKind::ReduceSum), 2);
}

TEST(MergeCommon, EqualOutputsAreBothDelivered) {
  Builder b("outputs");
  const TensorId x = b.input("x", Dtype::f32, {4});
  const TensorId one = b.add(OpKind::Tanh, {x});
  const TensorId other = b.add(OpKind::Tanh, {x});
  b.output(one);
  b.output(other);
  const Graph graph = *b.finish();
  const Graph merged = *merge_common(graph);
  EXPECT_EQ(output_names(merged), output_names(graph));
  EXPECT_EQ(count(merged, OpKind::Tanh), 1);
  EXPECT_EQ(count(merged, OpKind::Identity), 1);
  EXPECT_EQ(evaluated(merged, 1), evaluated(graph, 1));
}

TEST(MergeCommon, AnOutputThatIsReadElsewhereKeepsItsName) {
  Builder b("late");
  const TensorId x = b.input("x", Dtype::f32, {4});
  const TensorId one = b.add(OpKind::Tanh, {x});
  const TensorId other = b.add(OpKind::Tanh, {x});
  b.output(other);
  b.output(b.add(OpKind::Abs, {one}));
  const Graph graph = *b.finish();
  const Graph merged = *merge_common(graph);
  EXPECT_EQ(output_names(merged), output_names(graph));
  EXPECT_EQ(merged.nodes.size(), 2U) << to_text(merged);
}

TEST(MergeCommon, NumbersAreEqualByTheirContentsAndWeightsOnlyToThemselves) {
  Builder b("constants");
  const TensorId x = b.input("x", Dtype::f32, {2});
  const auto by = [&](const std::string& name, const Shape& shape, std::vector<double> values) {
    return b.add(OpKind::Mul, {x, b.constant(name, Dtype::f32, shape, values)});
  };
  const TensorId numbers = b.add(OpKind::Sub, {by("a", {}, {2}), by("b", {}, {2})});
  const TensorId weights = b.add(OpKind::Sub, {by("c", {2}, {2, 2}), by("d", {2}, {2, 2})});
  b.output(b.add(OpKind::Add, {numbers, weights}));
  EXPECT_EQ(count(*merge_common(*b.finish()), OpKind::Mul), 3);
}

TEST(MergeCommon, NodesOfOneNameStayAsTheyAre) {
  Builder b("names");
  const TensorId x = b.input("x", Dtype::f32, {4});
  b.output(b.add(OpKind::Mul, {b.add(OpKind::Tanh, {x}), b.add(OpKind::Tanh, {x})}));
  Graph graph = *b.finish();
  graph.nodes[0].name = graph.nodes[1].name = "both";
  EXPECT_EQ(merge_common(graph)->nodes.size(), 3U);
}

TEST(MergeCommon, ReductionsOfTwoNormalisationsOfOneInputAreOne) {
  Builder b("norms");
  const TensorId x = b.input("x", Dtype::f32, {4, 8});
  for (const std::string name : {"one", "other"})
    b.output(b.add(OpKind::LayerNormalization,
                   {x, b.input(name, Dtype::f32, {8}), b.input(name + "_bias", Dtype::f32, {8})}));
  const Graph primitive = *decompose(*b.finish());
  const Graph merged = *merge_common(primitive);
  EXPECT_EQ(2 * count(merged, OpKind::ReduceSum), count(primitive, OpKind::ReduceSum));
  EXPECT_EQ(evaluated(merged, 1), evaluated(primitive, 1));
}
}  // namespace
}  // namespace warploom::graph
