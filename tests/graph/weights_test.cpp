// How folded constants are made of weights: found, evaluated, and refused where it is not so.
#include "graph/weights.h"
#include <gtest/gtest.h>
#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "builder.h"
#include "graph/graph.h"

namespace warploom::graph {
namespace {
const std::vector<double> kScale = {1, 2, 3};
const std::vector<double> kBias = {0.5, 0, -1};
const std::vector<double> kMean = {4, 5, 6};
const std::vector<double> kVariance = {0.25, 1, 4};

// y = factor · BatchNormalization(x), its weights constants or inputs.
struct Normed {
  Graph graph;  // primitives
  std::map<std::string, Tensor> weights;
};

Normed normed(bool open) {
  Builder b("normed");
  Normed made;
  const auto weight = [&](const std::string& name, const std::vector<double>& values) {
    Builder alone("alone");
    const Shape shape = {std::ssize(values)};
    alone.output(alone.add(OpKind::Relu, {alone.constant(name, Dtype::f32, shape, values)}));
    const auto graph = alone.finish();
    made.weights[name] = graph->tensor(*graph->tensor_named(name));
    return open ? b.input(name, Dtype::f32, shape) : b.constant(name, Dtype::f32, shape, values);
  };
  const TensorId x = b.input("x", Dtype::f32, {2, 3, 4});
  const TensorId scale = weight("scale", kScale);
  const TensorId bias = weight("bias", kBias);
  const TensorId mean = weight("mean", kMean);
  const TensorId variance = weight("variance", kVariance);
  const TensorId factor = weight("factor", {2});
  const TensorId norm = b.add(OpKind::BatchNormalization, {x, scale, bias, mean, variance});
  b.output(b.add(OpKind::Mul, {norm, factor}));
  const auto inferred = b.finish();
  EXPECT_TRUE(inferred) << describe(inferred.error());
  const auto graph = open ? written_out(*inferred) : decompose(*simplify(*inferred));
  EXPECT_TRUE(graph) << describe(graph.error());
  made.graph = *graph;
  return made;
}

// The constants that kernels would be given: those of more than one element.
std::vector<Tensor> held_by(const Graph& graph) {
  std::vector<Tensor> held;
  for (const Tensor& tensor : graph.tensors)
    if (tensor.constant && element_count(tensor.shape) > 1) held.push_back(tensor);
  return held;
}

TEST(Making, FindsTheStepsFromWeightsToFoldedConstants) {
  const Normed open = normed(true);
  const std::vector<Tensor> held = held_by(normed(false).graph);
  ASSERT_EQ(held.size(), 2);  // a and b of a·x + b
  const Making making = making_of(open.graph, open.weights, held);
  EXPECT_EQ(making.made.size(), 2);
  EXPECT_EQ(making.carried, (std::set<std::string>{"scale", "bias", "mean", "variance"}));
  EXPECT_EQ(making.steps.outputs.size(), 2);
}

TEST(Making, LeavesOutAWeightThatReachesTheOutputOnAnotherWay) {
  const Normed open = normed(true);
  const Making making = making_of(open.graph, open.weights, held_by(normed(false).graph));
  EXPECT_FALSE(making.carried.contains("factor"));
}

TEST(Making, OfAConstantWithOtherElementsIsNotBelieved) {
  const Normed open = normed(true);
  std::vector<Tensor> held = held_by(normed(false).graph);
  store_from_double(Dtype::f32, held[0].constant->data(), 1, 77);
  const Making making = making_of(open.graph, open.weights, held);
  EXPECT_EQ(making.made, (std::set<std::string>{held[1].name}));
  EXPECT_FALSE(making.carried.contains("scale"));  // it may reach the output through the other
}

TEST(Making, TakesAWeightThatIsReadAsItIs) {
  Builder b("plain");
  const TensorId x = b.input("x", Dtype::f32, {2, 3});
  const TensorId w = b.input("w", Dtype::f32, {3});
  b.output(b.add(OpKind::Mul, {x, w}));
  Normed weights = normed(true);
  Tensor w_held = weights.weights["scale"];
  w_held.name = "w";
  const Making making = making_of(*written_out(*b.finish()), {{"w", w_held}}, std::vector{w_held});
  EXPECT_EQ(making.carried, (std::set<std::string>{"w"}));
  EXPECT_TRUE(making.steps.nodes.empty());
}

TEST(Making, PrintsStepsWithTheirShapesAndTheConstantsTheyRead) {
  const Normed open = normed(true);
  const Making making = making_of(open.graph, open.weights, held_by(normed(false).graph));
  const nlohmann::json record = to_json(making, open.weights);
  EXPECT_EQ(record["carried"].size(), 4);
  EXPECT_EQ(record["carried"][0]["name"], "bias");
  EXPECT_EQ(record["carried"][0]["shape"], (Shape{3}));
  EXPECT_GT(record["steps"].size(), 4);
  EXPECT_EQ(record["steps"].back()["dtype"], "f32");
  EXPECT_FALSE(record["values"].empty());
}

// Weights of a convolution that are zero today need not be so tomorrow.
TEST(Making, AConvolutionsBiasOfZerosIsReadLikeAnyOther) {
  Builder b("conv");
  const TensorId x = b.input("x", Dtype::f32, {1, 2, 4, 4});
  const TensorId w = b.input("w", Dtype::f32, {3, 2, 3, 3});
  const TensorId zeros = b.constant("zeros", Dtype::f32, {3}, std::vector<double>{0, 0, 0});
  b.output(b.add(OpKind::Conv, {x, w, zeros}));
  const auto graph = decompose(*b.finish());
  ASSERT_TRUE(graph);
  const auto is_add = [](const Node& node) { return node.op == OpKind::Add; };
  EXPECT_EQ(std::ranges::count_if(graph->nodes, is_add), 1);
}
}  // namespace
}  // namespace warploom::graph
