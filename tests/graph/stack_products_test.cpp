#include "graph/stack_products.h"
#include <gtest/gtest.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "base/random.h"
#include "builder.h"
#include "evaluated.h"
#include "graph/graph.h"

namespace warploom::graph {
namespace {
using Integers = std::vector<int64_t>;

int64_t count(const Graph& graph, OpKind op) {
  return std::ranges::count(graph.nodes, op, &Node::op);
}

TensorId weights(Builder& b, const std::string& name, const Shape& shape) {
  Random random(1, name);
  std::vector<double> values(static_cast<size_t>(element_count(shape)));
  for (double& value : values)
    value = random.normal();
  return b.constant(name, Dtype::f64, shape, values);
}

// The same numbers, to rounding.
Graph stacked(const Graph& graph) {
  const auto made = stack_products(graph);
  EXPECT_TRUE(made) << describe(made.error());
  if (!made) return graph;
  const Values want = evaluated(graph);
  const Values have = evaluated(*made);
  EXPECT_EQ(want.size(), have.size());
  for (size_t o = 0; o < std::min(want.size(), have.size()); ++o)
    for (size_t i = 0; i < want[o].size(); ++i)
      EXPECT_NEAR(have[o][i], want[o][i], 1e-9) << "output " << o << ", element " << i;
  return *made;
}

// What differs between the projections of an attention.
struct Projections {
  std::optional<OpKind> scaled;  // the first by a number
  bool turned = false;           // the second another way
  std::optional<OpKind> behind;  // the last
  bool is_output = false;        // the last
};

// x·wq + bq, x·wk + bk and x·wv + bv, by heads; q·kᵀ and that times v.
Graph attention(const Projections& with = {}) {
  Builder b("attention");
  const TensorId x = b.input("x", Dtype::f64, {2, 5, 12});
  std::vector<TensorId> parts;
  for (const std::string name : {"q", "k", "v"}) {
    TensorId y = b.add(OpKind::MatMul, {x, weights(b, "w" + name, {12, 12})});
    y = b.add(OpKind::Add, {y, weights(b, "b" + name, {12})});
    if (with.behind && name == "v") y = b.add(*with.behind, {y});
    if (with.is_output && name == "v") b.output(y);
    y = b.add(OpKind::Reshape, {y, b.integers("shape" + name, Integers{2, 5, 3, 4})});
    const Integers straight = {0, 2, 1, 3};
    const Integers turned = {0, 2, 3, 1};
    const bool turns = with.turned && name == "k";
    y = b.add(OpKind::Transpose, {y}, {{"perm", turns ? turned : straight}});
    if (with.scaled && name == "q")
      y = b.add(*with.scaled, {y, b.constant("scale", Dtype::f64, {}, std::vector{0.5})});
    parts.push_back(y);
  }
  TensorId k = parts[1];
  if (!with.turned) k = b.add(OpKind::Transpose, {k}, {{"perm", Integers{0, 1, 3, 2}}});
  b.output(b.add(OpKind::MatMul, {b.add(OpKind::MatMul, {parts[0], k}), parts[2]}));
  return *b.finish();
}

TEST(StackProducts, ProjectionsAreOneProduct) {
  const Graph made = stacked(attention());
  EXPECT_EQ(count(made, OpKind::MatMul), 3);
  EXPECT_EQ(count(made, OpKind::Add), 1);
  EXPECT_EQ(count(made, OpKind::Slice), 3);
}

TEST(StackProducts, AScaleOfOneIsAFactorOfAll) {
  for (const OpKind op : {OpKind::Mul, OpKind::Div}) {
    const Graph made = stacked(attention({.scaled = op}));
    EXPECT_EQ(count(made, OpKind::MatMul), 3) << name_of(op);
    EXPECT_EQ(count(made, op), 1) << name_of(op);
  }
}

TEST(StackProducts, AScaleBehindATransposeIsMovedBeforeIt) {
  const Graph made = stacked(attention({.scaled = OpKind::Div, .turned = true}));
  EXPECT_EQ(count(made, OpKind::MatMul), 3);
  EXPECT_EQ(count(made, OpKind::Div), 1);
}

// The product turns all as the first is, and what reads the second turns its last two axes.
TEST(StackProducts, WhatIsTurnedAnotherWayIsTurnedBehindIt) {
  const Graph made = stacked(attention({.turned = true}));
  EXPECT_EQ(count(made, OpKind::MatMul), 3);
  EXPECT_EQ(count(made, OpKind::Transpose), 2);
}

// Bundles and judges find what kernels load by its name in the model.
TEST(StackProducts, NoConstantIsDataThatTheModelLacks) {
  const Graph given = attention({.scaled = OpKind::Div, .turned = true});
  for (const Tensor& tensor : stacked(given).tensors) {
    if (!tensor.constant || !is_float(tensor.dtype) || element_count(tensor.shape) == 1) continue;
    EXPECT_TRUE(given.tensor_named(tensor.name)) << tensor.name;
  }
}

// The product would have computed it on the way.
TEST(StackProducts, AnActivationBehindOneKeepsThemApart) {
  EXPECT_EQ(count(stacked(attention({.behind = OpKind::Tanh})), OpKind::MatMul), 5);
}

TEST(StackProducts, AnOutputKeepsThemApart) {
  EXPECT_EQ(count(stacked(attention({.is_output = true})), OpKind::MatMul), 5);
}

// silu(x·w) · (x·v): the second product takes what follows both.
TEST(StackProducts, GatesStayApart) {
  Builder b("gates");
  const TensorId x = b.input("x", Dtype::f64, {4, 6});
  const TensorId gate = b.add(OpKind::MatMul, {x, weights(b, "w", {6, 8})});
  const TensorId up = b.add(OpKind::MatMul, {x, weights(b, "v", {6, 8})});
  const TensorId silu = b.add(OpKind::Mul, {gate, b.add(OpKind::Sigmoid, {gate})});
  const TensorId both = b.add(OpKind::Mul, {silu, up});
  b.output(b.add(OpKind::MatMul, {both, weights(b, "u", {8, 6})}));
  EXPECT_EQ(count(stacked(*b.finish()), OpKind::MatMul), 3);
}

// Weights of another shape, or that are no constants, are products of their own.
TEST(StackProducts, OtherWeightsAreLeftAlone) {
  for (const bool constant : {false, true}) {
    Builder b("others");
    const TensorId x = b.input("x", Dtype::f64, {4, 6});
    const TensorId q = b.add(OpKind::MatMul, {x, weights(b, "w", {6, 8})});
    const TensorId v = constant ? weights(b, "v", {6, 9}) : b.input("v", Dtype::f64, {6, 8});
    const TensorId k = b.add(OpKind::MatMul, {x, v});
    const TensorId turned = b.add(OpKind::Transpose, {q}, {{"perm", Integers{1, 0}}});
    b.output(b.add(OpKind::MatMul, {turned, k}));
    EXPECT_EQ(count(stacked(*b.finish()), OpKind::MatMul), 3) << constant;
  }
}
}  // namespace
}  // namespace warploom::graph
