// Regions that store several tensors: what fusion joins, and what it leaves apart.
#include <gtest/gtest.h>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>
#include "../graph/builder.h"
#include "base/dtype.h"
#include "base/error.h"
#include "graph/builder.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "plan/fusion.h"
#include "plan/region.h"
#include "target/capabilities.h"

namespace warploom::plan {
namespace {
using graph::Graph;
using graph::OpKind;
using graph::TensorId;
using Attributes = std::map<std::string, graph::Attribute>;

const Attributes kLastAxis = {{"axes", std::vector<int64_t>{1}}, {"keepdims", int64_t{0}}};

// By region: how many tensors it stores.
using Counts = std::vector<size_t>;

target::Capabilities machine(const std::string& target) {
  auto capabilities = *target::capabilities_of(target);
  if (!capabilities.gpu) capabilities.num_sms = 2;
  return capabilities;
}

Partition planned(const Graph& given, const std::string& target = "cpu",
                  const std::set<std::string>& constants = {}) {
  const auto capabilities = machine(target);
  auto parts =
      regions_of(*lower_for_target(given, capabilities), Track::fp32, capabilities, {}, constants);
  EXPECT_TRUE(parts) << describe(parts.error());
  return parts ? *std::move(parts) : Partition{};
}

Counts stored(const Partition& parts) {
  Counts counts;
  for (const Region& region : parts.regions)
    counts.push_back(region.graph.outputs.size());
  return counts;
}

TensorId norm(graph::Builder& b, TensorId x, int64_t columns) {
  const std::string number = std::to_string(x);
  return b.add(OpKind::LayerNormalization, {x, b.input("scale" + number, Dtype::f32, {columns}),
                                            b.input("shift" + number, Dtype::f32, {columns})});
}

// The residual of a transformer before its norm: h = x + r is read by the norm and later on.
TEST(Joins, ASumAndTheNormOfItAreOneRegion) {
  graph::Builder b("residual");
  const TensorId x = b.input("x", Dtype::f32, {64, 96});
  const TensorId h = b.add(OpKind::Add, {x, b.input("r", Dtype::f32, {64, 96})});
  b.output(norm(b, h, 96));
  b.output(h);
  for (const std::string target : {"cpu", "sm_90a", "sm_80"})
    EXPECT_EQ(stored(planned(*b.finish(), target)), Counts{2}) << target;
}

TEST(Joins, AProductStoresItsResultAndWhatAnActivationMakesOfIt) {
  graph::Builder b("activation");
  const TensorId x = b.input("x", Dtype::f32, {128, 64});
  const TensorId y = b.add(OpKind::MatMul, {x, b.input("w", Dtype::f32, {64, 128})});
  b.output(y);
  b.output(b.add(OpKind::Relu, {y}));
  for (const std::string target : {"cpu", "sm_90a", "sm_80"})
    EXPECT_EQ(stored(planned(*b.finish(), target)), Counts{2}) << target;
}

TEST(Joins, AProductStoresItsResultAndTheNormOfItsRows) {
  graph::Builder b("norm");
  const TensorId x = b.input("x", Dtype::f32, {128, 64});
  const TensorId y = b.add(OpKind::MatMul, {x, b.input("w", Dtype::f32, {64, 128})});
  const TensorId h = b.add(OpKind::Add, {y, b.input("r", Dtype::f32, {128, 128})});
  b.output(h);
  b.output(norm(b, h, 128));
  EXPECT_EQ(stored(planned(*b.finish())), Counts{2});
}

TEST(Joins, StatisticsOfTheSameRowsAreReadOnce) {
  graph::Builder b("statistics");
  const TensorId x = b.input("x", Dtype::f32, {64, 96});
  b.output(b.add(OpKind::ReduceMean, {x}, kLastAxis));
  b.output(b.add(OpKind::ReduceMax, {x}, kLastAxis));
  EXPECT_EQ(stored(planned(*b.finish())), Counts{2});
}

// The mean of rows has another shape than what is made of the rows.
TEST(Joins, StatisticsAreStoredBesideTheRows) {
  graph::Builder b("beside");
  const TensorId x = b.input("x", Dtype::f32, {64, 96});
  b.output(b.add(OpKind::ReduceMean, {x}, kLastAxis));
  b.output(b.add(OpKind::Softmax, {x}, {{"axis", int64_t{1}}}));
  EXPECT_EQ(stored(planned(*b.finish())), Counts{2});
}

TEST(Joins, AResultUnderAnotherShapeIsStoredBesideIt) {
  graph::Builder b("shapes");
  const TensorId h = b.add(
      OpKind::Add, {b.input("x", Dtype::f32, {4, 16, 96}), b.input("r", Dtype::f32, {4, 16, 96})});
  b.output(h);
  const TensorId rows =
      b.add(OpKind::Reshape, {h, b.integers("shape", std::vector<int64_t>{64, 96})});
  b.output(norm(b, rows, 96));
  EXPECT_EQ(stored(planned(*b.finish())), Counts{2});
}

TEST(Joins, TheLargestStoredTensorIsTheFirst) {
  graph::Builder b("order");
  const TensorId x = b.input("x", Dtype::f32, {64, 96});
  b.output(b.add(OpKind::ReduceMean, {x}, kLastAxis));
  b.output(b.add(OpKind::Softmax, {x}, {{"axis", int64_t{1}}}));
  const Partition parts = planned(*b.finish());
  ASSERT_EQ(stored(parts), Counts{2});
  const Graph& region = parts.regions[0].graph;
  EXPECT_EQ(region.tensor(region.outputs[0]).shape, (graph::Shape{64, 96}));
}

// One of a group's nests would compute the product's operand anew for every column.
TEST(Joins, AnOperandOfAProductIsNotStoredByIt) {
  graph::Builder b("operand");
  const TensorId x = b.add(OpKind::Exp, {b.input("x", Dtype::f32, {64, 64})});
  b.output(x);
  b.output(b.add(OpKind::MatMul, {x, b.input("w", Dtype::f32, {64, 64})}));
  EXPECT_EQ(stored(planned(*b.finish())), (Counts{1, 1}));
}

// In one nest the exponential would be computed at both of its places.
TEST(Joins, WhatIsReadAtAnotherPlaceIsNotComputedAgain) {
  graph::Builder b("turned");
  const TensorId x = b.add(OpKind::Exp, {b.input("x", Dtype::f32, {64, 64})});
  b.output(x);
  const TensorId turned = b.add(OpKind::Transpose, {x}, {{"perm", std::vector<int64_t>{1, 0}}});
  b.output(b.add(OpKind::Add, {turned, b.input("r", Dtype::f32, {64, 64})}));
  EXPECT_EQ(stored(planned(*b.finish())), (Counts{1, 1}));
}

// y reads what a product makes of h: it cannot be computed with h.
TEST(Joins, WhatDependsOnAnotherRegionBetweenStaysApart) {
  graph::Builder b("between");
  const TensorId h =
      b.add(OpKind::Add, {b.input("x", Dtype::f32, {64, 64}), b.input("r", Dtype::f32, {64, 64})});
  const TensorId z =
      b.add(OpKind::ReduceSum, {b.add(OpKind::MatMul, {h, b.input("w", Dtype::f32, {64, 64})})},
            {{"axes", std::vector<int64_t>{0}}});
  b.output(h);
  b.output(b.add(OpKind::Tanh, {b.add(OpKind::Mul, {h, z})}));
  std::set<std::string> made;
  for (const Region& region : planned(*b.finish()).regions) {
    EXPECT_EQ(region.graph.outputs.size(), 1u) << graph::to_text(region.graph);
    for (const TensorId id : region.graph.inputs) {
      const std::string& name = region.tensors[static_cast<size_t>(id)];
      EXPECT_TRUE(name.size() == 1 || made.contains(name)) << name << " is read before it is made";
    }
    for (const std::string& name : region.stored())
      made.insert(name);
  }
}

// What weights alone make is computed once, before the calls.
TEST(Joins, WhatIsPreparedStaysApartFromWhatIsNot) {
  graph::Builder b("prepared");
  const TensorId w = b.input("w", Dtype::f32, {64, 96});
  const TensorId x = b.input("x", Dtype::f32, {64, 96});
  b.output(b.add(OpKind::Softmax, {w}, {{"axis", int64_t{1}}}));
  b.output(b.add(OpKind::Softmax, {b.add(OpKind::Mul, {w, x})}, {{"axis", int64_t{1}}}));
  EXPECT_EQ(stored(planned(*b.finish())), Counts{2});
  EXPECT_EQ(stored(planned(*b.finish(), "cpu", {"w"})), (Counts{1, 1}));
}

// Two large regions that have no more in common than a row of numbers.
TEST(Joins, LittleInCommonJoinsNothing) {
  graph::Builder b("little");
  const TensorId scale = b.input("scale", Dtype::f32, {96});
  for (const std::string name : {"x", "z"})
    b.output(b.add(OpKind::Mul, {b.input(name, Dtype::f32, {640, 96}), scale}));
  EXPECT_EQ(stored(planned(*b.finish())), (Counts{1, 1}));
}

// A transformer's layers: each product stores the sum with the residual and the norm of it.
TEST(Joins, EqualLayersAreEqualRegions) {
  graph::Builder b("layers");
  TensorId h = b.input("x", Dtype::f32, {64, 96});
  for (int layer = 0; layer < 4; ++layer) {
    const std::string number = std::to_string(layer);
    const TensorId w = b.input("w" + number, Dtype::f32, {96, 96});
    h = b.add(OpKind::Add, {h, b.add(OpKind::MatMul, {norm(b, h, 96), w})});
  }
  b.output(h);
  std::map<std::string, int> times;
  for (const Region& region : planned(*b.finish()).regions)
    if (region.graph.outputs.size() == 2) ++times[region.identity];
  ASSERT_EQ(times.size(), 1u);
  EXPECT_EQ(times.begin()->second, 3);
}
}  // namespace
}  // namespace warploom::plan
