// Which nests are contractions, and what stands where in them.
#include "loopnest/contraction.h"
#include <gtest/gtest.h>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <optional>
#include <vector>
#include "base/dtype.h"
#include "base/value_op.h"
#include "graph/builder.h"
#include "graph/graph.h"
#include "loopnest/loop_nest.h"
#include "support/nets.h"
#include "triangle_nets.h"

namespace warploom::loopnest {
namespace {
using graph::OpKind;
using test::found, test::kept, test::Net, test::Product, test::Side, test::times, test::triangle;
using test::within;

graph::Graph batched(const graph::Shape& a, const graph::Shape& w, bool transposed) {
  Net net;
  const auto x = net.x(a);
  const auto weights = net.x(w);
  const auto rows = transposed ? net.transpose(weights, {0, 2, 1}) : weights;
  return net.with({net.add(OpKind::MatMul, {x, rows})});
}

TEST(Contractions, BatchOfTheLeftOperandAloneJoinsTheRows) {
  const auto c = contraction_of(nests_of(batched({3, 10, 20}, {20, 30}, false)));
  ASSERT_TRUE(c);
  EXPECT_TRUE(c->batch.empty());
  EXPECT_EQ(c->nest.axes[c->row], 30);
}

// x · w and what `behind` makes of it.
bool saturates_with(const std::function<graph::TensorId(Net&, graph::TensorId)>& behind) {
  Net net;
  const auto product = net.add(OpKind::MatMul, {net.x({10, 20}), net.x({20, 30})});
  const auto c = contraction_of(nests_of(net.with({behind(net, product)})));
  return c && saturates(*c);
}

TEST(Contractions, ATanhSaturatesWhateverItIsMultipliedBy) {
  EXPECT_TRUE(saturates_with([](Net& net, graph::TensorId sum) {
    return net.add(OpKind::Mul, {net.add(OpKind::Tanh, {sum}), net.x({30})});
  }));
}

TEST(Contractions, ASumBoundedOnOneSideOrTimesItsSigmoidDoesNotSaturate) {
  EXPECT_FALSE(
      saturates_with([](Net& net, graph::TensorId sum) { return net.add(OpKind::Relu, {sum}); }));
  EXPECT_FALSE(saturates_with([](Net& net, graph::TensorId sum) {
    return net.add(OpKind::Mul, {sum, net.add(OpKind::Sigmoid, {sum})});
  }));
}

TEST(Contractions, ASumBoundedOnBothSidesSaturates) {
  EXPECT_TRUE(saturates_with([](Net& net, graph::TensorId sum) {
    const auto above = net.add(OpKind::Relu, {sum});
    return net.add(OpKind::Min, {above, net.x({30})});
  }));
}

TEST(Contractions, ATransposedOperandIsAnotherStride) {
  const auto c = contraction_of(nests_of(batched({3, 10, 20}, {3, 30, 20}, true)));
  ASSERT_TRUE(c);
  EXPECT_EQ(c->batch.size(), 1);
  EXPECT_EQ(c->nest.loads[c->b].stride(c->batch[0]), 600);
  EXPECT_EQ(c->nest.loads[c->b].stride(c->k[0]), 1);
  EXPECT_EQ(c->nest.loads[c->b].stride(c->column), 20);
}

TEST(Contractions, ScalesOf8BitOperandsFollowTheSum) {
  graph::Builder b("scaled");
  const auto half = b.constant("half", Dtype::f32, {}, std::array{0.5});
  const auto x = b.add(OpKind::DequantizeLinear, {b.input("x", Dtype::i8, {4, 6}), half});
  const auto w = b.add(OpKind::DequantizeLinear,
                       {b.input("w", Dtype::i8, {6, 8}), b.input("s", Dtype::f32, {8})},
                       {{"axis", int64_t{1}}});
  b.output(b.add(OpKind::MatMul, {x, w}));
  const auto c = contraction_of(nests_of(*graph::decompose(*b.finish())));
  ASSERT_TRUE(c);
  EXPECT_EQ(c->nest.loads[c->a].dtype, Dtype::i8);
  const auto epilogue = epilogue_of(*c);
  ASSERT_TRUE(epilogue);
  ASSERT_EQ(epilogue->size(), 1);
  EXPECT_EQ(c->nest.loads[static_cast<size_t>(epilogue->front())].name, "s");
  const auto known = [&](int v) -> std::optional<double> {
    if (static_cast<size_t>(v) == c->sum) return 10;
    return c->nest.value(v).kind == Expr::Kind::load ? std::optional(4.0) : std::nullopt;
  };
  const auto product = [](ValueOp, const std::vector<double>& of) { return of[0] * of[1]; };
  EXPECT_EQ(made_of<double>(c->nest, c->nest.outputs[0].value, known, std::identity{}, product),
            20.0);
}

TEST(Contractions, BlocksOfScalesAreFactorsAlongOneOfTwoAxes) {
  graph::Builder b("scaled");
  const auto y = b.add(OpKind::ScaledMatMul,
                       {b.input("x", Dtype::e4m3, {4, 6}), b.input("w", Dtype::e4m3, {6, 8}),
                        b.input("sx", Dtype::f32, {4, 2}), b.input("sw", Dtype::f32, {2, 4})});
  b.output(y);
  const auto nests = nests_of(*graph::decompose(*b.finish()));
  EXPECT_FALSE(contraction_of(nests)) << "for families that know of none";
  const auto c = contraction_of(nests, true);
  ASSERT_TRUE(c);
  const auto extents = [&](const std::vector<size_t>& axes) {
    std::vector<int64_t> out;
    for (const size_t axis : axes)
      out.push_back(c->nest.axes[axis]);
    return out;
  };
  EXPECT_EQ(extents(c->m), (std::vector<int64_t>{4}));
  EXPECT_EQ(extents(c->n), (std::vector<int64_t>{4, 2}));
  EXPECT_EQ(extents(c->k), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(c->channel, c->k[1]);
  ASSERT_EQ(c->scales.size(), 2u);
  for (const size_t load : c->scales)
    EXPECT_EQ(c->nest.loads[load].dtype, Dtype::f32);
  EXPECT_TRUE(epilogue_of(*c)) << "the result is rounded as it is stored";
}

TEST(Contractions, TwoContractionsAreNoRegion) {
  graph::Builder b("two");
  const auto x = b.input("x", Dtype::f32, {4, 4});
  b.output(b.add(OpKind::MatMul, {b.add(OpKind::MatMul, {x, x}), x}));
  EXPECT_FALSE(contraction_of(nests_of(*b.finish())));
}

TEST(Triangle, OfAProductBoundsIt) {
  for (const int64_t upper : {0, 1})
    for (const int64_t diagonal : {-70, -1, 0, 1, 70}) {
      const Contraction c = found(kept({}, upper, diagonal));
      ASSERT_EQ(c.domain_constraints.size(), 1u);
      for (const int64_t row : {0, 1, 69, 70, 71, 129})
        for (const int64_t column : {0, 1, 2, 69, 70, 71, 139})
          EXPECT_EQ(within(c, row, column),
                    upper ? column - row >= diagonal : column - row <= diagonal);
    }
}

TEST(Triangle, OfABatchBoundsEveryMatrix) {
  const Contraction c = found(kept({.batch = {3}}, 1, 0));
  ASSERT_EQ(c.domain_constraints.size(), 1u);
  EXPECT_EQ(c.domain_constraints[0].steps[c.batch[0]], 0);
}

TEST(Triangle, StrictComparisonsLeaveTheDiagonalOut) {
  for (const bool exchanged : {false, true}) {
    Net net;
    std::vector<int64_t> rows(130);
    std::vector<int64_t> columns(140);
    std::iota(rows.begin(), rows.end(), 0);
    std::iota(columns.begin(), columns.end(), 0);
    const auto row = net.reshape(net.ints(rows), {130, 1});
    const auto column = net.ints(columns);
    const auto mask = net.add(OpKind::Less, {row, column});
    const auto y = net.add(OpKind::MatMul, {net.x({130, 40}), net.x({40, 140})});
    const auto zero = net.number(0);
    const auto chosen = net.add(OpKind::Where, {mask, exchanged ? zero : y, exchanged ? y : zero});
    const Contraction c = found(net.with({chosen}));
    ASSERT_EQ(c.domain_constraints.size(), 1u);
    EXPECT_EQ(within(c, 5, 5), exchanged);
    EXPECT_EQ(within(c, 5, 6), !exchanged);
    EXPECT_EQ(within(c, 6, 5), exchanged);
  }
}

TEST(Triangle, OfATransposedProductBoundsItTheOtherWay) {
  Net net;
  const auto y = net.add(OpKind::MatMul, {net.x({130, 40}), net.x({40, 140})});
  const Contraction c = found(net.with({triangle(net, net.transpose(y, {1, 0}), 1)}));
  ASSERT_EQ(c.domain_constraints.size(), 1u);
  EXPECT_EQ(c.nest.axes[c.row], 140);
  EXPECT_TRUE(within(c, 3, 7));
  EXPECT_FALSE(within(c, 7, 3));
}

TEST(Triangle, WithinATriangleIsABand) {
  Net net;
  const auto y = net.add(OpKind::MatMul, {net.x({130, 40}), net.x({40, 140})});
  const Contraction c = found(net.with({triangle(net, triangle(net, y, 1, -2), 0, 2)}));
  EXPECT_EQ(c.domain_constraints.size(), 2u);
  for (const int64_t d : {-3, -2, 0, 2, 3})
    EXPECT_EQ(within(c, 50, 50 + d), std::abs(d) <= 2);
}

TEST(Triangle, BoundsNothingWhereTheProductIsNeededBesides) {
  Net net;
  const auto y = net.add(OpKind::MatMul, {net.x({130, 40}), net.x({40, 140})});
  EXPECT_TRUE(
      found(net.with({net.add(OpKind::Add, {triangle(net, y, 1), y})})).domain_constraints.empty());
}

TEST(Triangle, BoundsNothingWhereAnInputChooses) {
  Net net;
  const auto y = net.add(OpKind::MatMul, {net.x({130, 40}), net.x({40, 140})});
  const auto mask = net.add(OpKind::Less, {net.x({130, 140}), net.number(0)});
  EXPECT_TRUE(found(net.with({net.add(OpKind::Where, {mask, y, net.number(0)})}))
                  .domain_constraints.empty());
}

TEST(Triangle, OfRowsThatAreReducedBoundsThemOnlyBefore) {
  for (const bool before : {false, true}) {
    Net net;
    const auto y = net.add(OpKind::MatMul, {net.x({130, 40}), net.x({40, 140})});
    const auto soft = net.add(OpKind::Softmax, {before ? triangle(net, y, 1) : y});
    const auto c =
        contraction_of(nests_of(net.with({before ? soft : triangle(net, soft, 1)})), true);
    ASSERT_TRUE(c);
    EXPECT_EQ(c->domain_constraints.size(), before ? 1u : 0u);
  }
}

TEST(Triangle, AsAFactorBoundsTheSum) {
  const Product p{130, 140, 150};
  for (const Side side : {Side::a, Side::b})
    for (const int64_t upper : {0, 1}) {
      const Contraction c = found(times(p, side, upper, 4));
      ASSERT_EQ(c.domain_constraints.size(), 1u);
      EXPECT_EQ(c.triangular_operands.size(), 1u);
      for (const int64_t at : {0, 50, 53, 54, 55, 129})
        for (const int64_t k : {0, 46, 50, 54, 58, 149}) {
          const int64_t above = side == Side::a ? k - at : at - k;
          EXPECT_EQ(within(c, side == Side::a ? at : 7, side == Side::a ? 7 : at, k),
                    upper ? above >= 4 : above <= 4);
        }
    }
}

TEST(Triangle, FilledWithAnotherNumberIsNoFactor) {
  Net net;
  std::vector<int64_t> places(150);
  std::iota(places.begin(), places.end(), 0);
  const auto mask =
      net.add(OpKind::Less, {net.ints(places), net.reshape(net.ints(places), {150, 1})});
  const auto a = net.add(OpKind::Where, {mask, net.x({150, 150}), net.number(1)});
  EXPECT_FALSE(
      contraction_of(nests_of(net.with({net.add(OpKind::MatMul, {a, net.x({150, 20})})}))));
}

TEST(Triangle, PartWithinIsThatOfAllTiles) {
  for (const int64_t upper : {0, 1})
    for (const int64_t diagonal : {-40, 0, 25}) {
      const Contraction c = found(kept({}, upper, diagonal));
      double kept = 0;
      for (int64_t i = 0; i < 130; ++i)
        for (int64_t j = 0; j < 140; ++j)
          kept += within(c, i, j);
      EXPECT_NEAR(part_within(c), kept / (130 * 140), 2e-3);
    }
}
}  // namespace
}  // namespace warploom::loopnest
