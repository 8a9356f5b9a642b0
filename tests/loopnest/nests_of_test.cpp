// Nests by plain loops in FP64 against the FP64 reference, and the forms that some graphs take.
#include <gtest/gtest.h>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "graph/graph.h"
#include "loopnest/loop_nest.h"
#include "nest_interpreter.h"
#include "support/nets.h"

namespace warploom::loopnest {
namespace {
using graph::OpKind;
using graph::Shape;
using graph::TensorId;
using test::Attributes;
using test::expect_agreement;
using test::expect_exact;
using test::Ints;
using test::nest_of;
using test::Net;
using test::to_text;
using Sizes = std::vector<int64_t>;

TEST(LoopNest, OfPointwiseOperatorsWithBroadcasts) {
  Net n;
  const auto x = n.x({2, 3, 4});
  const auto b = n.x({3, 1});
  const auto s = n.x({4});
  const auto y = n.add(OpKind::Add, {x, b});
  expect_agreement(n.with(
      {n.add(OpKind::Gelu, {n.add(OpKind::Mul, {y, s})}, {{"approximate", std::string("tanh")}})}));
}

TEST(LoopNest, OfAChainHasOneAxis) {
  Net n;
  const auto x = n.x({2, 3, 4});
  const auto y = n.x({2, 3, 4});
  const auto nest =
      nest_of(n.with({n.add(OpKind::Relu, {n.add(OpKind::Sub, {n.add(OpKind::Exp, {x}), y})})}));
  ASSERT_TRUE(nest);
  EXPECT_EQ(nest->axes, (Shape{24}));
  EXPECT_EQ(nest->values.size(), 5U) << to_text(*nest);
}

TEST(LoopNest, OfTransposesAndSlices) {
  Net n;
  const auto x = n.transpose(n.x({3, 4, 5}), {2, 0, 1});
  expect_agreement(n.with({n.add(OpKind::Neg, {n.slice(n.slice(x, 0, 4, 0, -2), 2, 1, 4)})}));
}

TEST(LoopNest, KeepsAxesThatMoveTogetherAsOne) {
  Net n;
  const auto nest = nest_of(n.with({n.transpose(n.x({2, 3, 4, 5}), {2, 3, 0, 1})}));
  ASSERT_TRUE(nest);
  EXPECT_EQ(nest->axes, (Shape{20, 6}));
}

TEST(LoopNest, SplitsAnAxisWhereAReshapeMeetsATranspose) {
  Net n;
  const auto heads = n.transpose(n.reshape(n.x({2, 5, 12}), {2, 5, 3, 4}), {0, 2, 1, 3});
  expect_agreement(n.with({n.reshape(n.add(OpKind::Mul, {heads, n.x({3, 1, 4})}), {2, 60})}));
}

TEST(LoopNest, SeesAnInputUnderAnotherShape) {
  Net n;
  const auto x = n.x({4, 6});
  const auto turned = n.reshape(x, {6, 4});
  expect_agreement(n.with({n.transpose(n.add(OpKind::Mul, {turned, n.x({6, 4})}), {1, 0})}));
}

TEST(LoopNest, HasNoFormWhereAReshapeCutsAnAxisUnevenly) {
  Net n;
  EXPECT_FALSE(nest_of(n.with({n.reshape(n.slice(n.x({4, 6}), 1, 0, 5), {5, 4})})));
}

TEST(LoopNest, OfAShuffleOfChannels) {
  Net n;
  const auto y = n.transpose(n.reshape(n.x({2, 6, 5}), {2, 3, 2, 5}), {0, 2, 1, 3});
  expect_agreement(n.with({n.add(OpKind::Mul, {n.reshape(y, {2, 6, 5}), n.x({6, 1})})}));
}

TEST(LoopNest, OfAConcatWritesPieceByPiece) {
  Net n;
  const auto both = n.add(OpKind::Concat, {n.x({2, 3}), n.x({2, 4})}, {{"axis", int64_t{1}}});
  const auto graph = n.with({n.add(OpKind::Mul, {both, n.x({7})})});
  EXPECT_EQ(nests_of(graph).size(), 2U);
  expect_agreement(graph);
}

TEST(LoopNest, OfAConcatInTheMiddleAddsUpItsPieces) {
  Net n;
  const auto both = n.add(OpKind::Concat, {n.x({2, 3}), n.add(OpKind::Exp, {n.x({2, 4})})},
                          {{"axis", int64_t{1}}});
  expect_agreement(n.with({n.transpose(both, {1, 0})}));
}

TEST(LoopNest, OfSeveralOutputs) {
  Net n;
  const auto x = n.x({2, 6});
  expect_agreement(n.with({n.slice(x, 1, 0, 3), n.slice(x, 1, 3, 6), n.add(OpKind::Exp, {x})}));
}

TEST(LoopNest, RoundsWhereACastNarrowsInAChain) {
  Net n;
  const auto y = n.add(OpKind::Cast, {n.add(OpKind::Exp, {n.x({3, 5})})},
                       {{"to", int64_t{onnx_type_of(Dtype::bf16)}}});
  const auto z = n.add(OpKind::Cast, {y}, {{"to", int64_t{onnx_type_of(Dtype::f32)}}});
  expect_agreement(n.with({n.add(OpKind::Exp, {z})}));
}

TEST(LoopNest, OfProductsWithEverySortOfOperand) {
  for (const auto& [a, b] : std::vector<std::pair<Shape, Shape>>{{{4, 5}, {5, 3}},
                                                                 {{2, 4, 5}, {5, 3}},
                                                                 {{3, 1, 4, 5}, {2, 5, 6}},
                                                                 {{5}, {5, 3}},
                                                                 {{4, 5}, {5}},
                                                                 {{5}, {5}}}) {
    Net n;
    const auto x = n.x(a);
    const auto y = n.x(b);
    expect_agreement(n.with({n.add(OpKind::Relu, {n.add(OpKind::MatMul, {x, y})})}));
  }
}

TEST(LoopNest, OfAScaledProductOfTransposedMatricesAndAnAddend) {
  Net n;
  expect_agreement(n.with(
      {n.add(OpKind::Gemm, {n.x({5, 4}), n.x({3, 5}), n.x({3})},
             {{"alpha", 0.5}, {"beta", 2.0}, {"transA", int64_t{1}}, {"transB", int64_t{1}}})}));
}

TEST(LoopNest, OfASoftmaxHasOneAxisForItsRows) {
  for (const int64_t axis : {0, 1, 2}) {
    Net n;
    const auto graph = n.with({n.add(
        OpKind::Softmax, {n.add(OpKind::Mul, {n.x({3, 4, 5}), n.x({5})})}, {{"axis", axis}})});
    const auto nest = nest_of(graph);
    ASSERT_TRUE(nest);
    EXPECT_EQ(nest->axes.size(), axis == 2 ? 2U : 3U) << to_text(*nest);
    EXPECT_EQ(nest->loads.size(), 2U) << to_text(*nest);
    expect_agreement(graph);
  }
}

TEST(LoopNest, OfALayerNormalizationReadsItsRowOnce) {
  Net n;
  const auto graph = n.with({n.add(
      OpKind::Relu, {n.add(OpKind::LayerNormalization, {n.x({2, 3, 8}), n.x({8}), n.x({8})})})});
  const auto nest = nest_of(graph);
  ASSERT_TRUE(nest);
  EXPECT_EQ(nest->axes, (Shape{6, 8})) << to_text(*nest);
  EXPECT_EQ(nest->loads.size(), 3U) << to_text(*nest);
  expect_agreement(graph);
}

TEST(LoopNest, OfAGroupNormalizationSplitsTheChannels) {
  Net n;
  const auto x = n.x({2, 6, 3, 4});
  const auto grouped = n.reshape(x, {2, 3, -1});
  const auto mean = n.add(OpKind::ReduceMean, {grouped, n.ints({2})}, {{"keepdims", int64_t{1}}});
  const auto centred = n.add(OpKind::Sub, {grouped, mean});
  const auto graph =
      n.with({n.add(OpKind::Mul, {n.reshape(centred, {2, 6, 3, 4}), n.x({1, 6, 1, 1})})});
  const auto nest = nest_of(graph);
  ASSERT_TRUE(nest);
  EXPECT_EQ(nest->axes, (Shape{2, 3, 2, 12})) << to_text(*nest);
  expect_agreement(graph);
}

TEST(LoopNest, OfReductionsWithAndWithoutTheirAxes) {
  for (const OpKind op :
       {OpKind::ReduceSum, OpKind::ReduceMax, OpKind::ReduceMin, OpKind::ReduceProd})
    for (const int64_t keep : {0, 1})
      for (const std::vector<int64_t>& axes :
           {std::vector<int64_t>{0}, {1}, {0, 2}, {-1, 1}, {0, 1, 2}}) {
        Net n;
        const auto x = n.add(OpKind::Add, {n.x({3, 4, 5}), n.x({4, 1})});
        expect_agreement(
            n.with({n.add(OpKind::Abs, {n.add(op, {x, n.ints(axes)}, {{"keepdims", keep}})})}));
      }
}

TEST(LoopNest, OfPrefixesHasOneAxisForTheLines) {
  for (const int64_t axis : {0, 1, 2})
    for (const int64_t reverse : {0, 1}) {
      Net n;
      const auto y = n.add(OpKind::CumSum, {n.add(OpKind::Exp, {n.x({3, 4, 5})}), n.ints({axis})},
                           {{"reverse", reverse}, {"exclusive", reverse}});
      const auto graph = n.with({n.add(OpKind::Mul, {y, n.x({5})})});
      const auto nest = nest_of(graph);
      ASSERT_TRUE(nest && nest->scan());
      EXPECT_EQ(nest->axes[static_cast<size_t>(nest->scan()->axes[0])], 3 + axis) << to_text(*nest);
      EXPECT_EQ(nest->scan()->reverse, reverse == 1) << to_text(*nest);
      expect_agreement(graph);
    }
}

TEST(LoopNest, OfPrefixesOfFlippedRowsTurnsTheScanRound) {
  Net n;
  const auto flip = [&](TensorId x) { return n.slice(x, 1, -1, -1000, -1); };
  const auto graph = n.with({flip(n.add(OpKind::CumSum, {flip(n.x({4, 9})), n.ints({1})}))});
  const auto nest = nest_of(graph);
  ASSERT_TRUE(nest && nest->scan());
  EXPECT_TRUE(nest->scan()->reverse) << to_text(*nest);
  EXPECT_EQ(nest->loads[0].at, nest->outputs[0].place.at) << to_text(*nest);
  expect_agreement(graph);
}

TEST(LoopNest, OfAPartOfPrefixesHasToBeginWithThem) {
  const auto part = [](int64_t reverse, int64_t begin, int64_t end) {
    Net n;
    const auto y = n.add(OpKind::CumSum, {n.x({4, 9}), n.ints({1})}, {{"reverse", reverse}});
    return n.with({n.slice(y, 1, begin, end)});
  };
  expect_agreement(part(0, 0, 6));
  expect_agreement(part(1, 3, 9));
  EXPECT_FALSE(nest_of(part(0, 1, 9)));
  EXPECT_FALSE(nest_of(part(1, 0, 8)));
}

TEST(LoopNest, OfWindowsWithPaddingAndStrides) {
  for (const OpKind op : {OpKind::MaxPool, OpKind::AveragePool})
    for (const bool before : {false, true}) {
      Net n;
      auto x = n.x({2, 3, 7, 8});
      if (before) x = n.add(OpKind::Relu, {n.add(OpKind::Sub, {x, n.x({3, 1, 1})})});
      expect_agreement(n.with({n.add(op, {x},
                                     Attributes{{"kernel_shape", Ints{3, 2}},
                                                {"strides", Ints{2, 1}},
                                                {"pads", Ints{1, 0, 1, 1}}})}));
    }
}

TEST(LoopNest, OfConvolutionsOfEverySort) {
  struct Sort {
    Shape x;
    Shape w;
    Ints strides;
    Ints pads;
    Ints dilations;
    int64_t group;
  };

  for (const Sort& s :
       std::vector<Sort>{{{2, 3, 6, 7}, {4, 3, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1},
                         {{1, 4, 6, 7}, {6, 2, 3, 1}, {2, 1}, {1, 0, 0, 0}, {1, 1}, 2},
                         {{1, 4, 8, 8}, {4, 1, 3, 3}, {1, 1}, {2, 2, 2, 2}, {2, 2}, 4},
                         {{2, 4, 5, 5}, {3, 4, 1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, 1},
                         {{2, 4, 9}, {3, 4, 3}, {2}, {1, 1}, {1}, 1}}) {
    Net n;
    const Ints kernel(s.w.begin() + 2, s.w.end());
    auto x = n.x(s.x);
    if (s.group == 1) x = n.add(OpKind::Relu, {x});
    const auto y = n.add(OpKind::Conv, {x, n.x(s.w), n.x({s.w[0]})},
                         Attributes{{"kernel_shape", kernel},
                                    {"strides", s.strides},
                                    {"pads", s.pads},
                                    {"dilations", s.dilations},
                                    {"group", s.group}});
    expect_agreement(n.with({n.add(OpKind::Relu, {y})}));
  }
}

TEST(LoopNest, OfAPaddedConvolutionOfAReluReadsZerosOutside) {
  Net n;
  const auto x = n.add(OpKind::Relu, {n.x({1, 2, 4, 4})});
  const auto nest = nest_of(n.with(
      {n.add(OpKind::Conv, {x, n.x({2, 2, 3, 3})}, Attributes{{"pads", Ints{1, 1, 1, 1}}})}));
  ASSERT_TRUE(nest);
  for (const Expr& value : nest->values)
    EXPECT_NE(value.kind, Expr::Kind::index) << to_text(*nest);
}

TEST(LoopNest, OfPaddingAndCropping) {
  for (const bool before : {false, true}) {
    Net n;
    auto x = n.x({3, 4});
    if (before) x = n.add(OpKind::Exp, {x});
    const double fill[] = {2.5};
    const auto y =
        n.add(OpKind::Pad, {x, n.ints({1, -1, 0, 2}), n.constant("fill", Dtype::f32, {}, fill)});
    expect_agreement(n.with({n.add(OpKind::Neg, {y})}));
  }
}

TEST(LoopNest, OfASliceThatIsPaddedDoesNotShowWhatWasCutOff) {
  Net n;
  expect_agreement(
      n.with({n.add(OpKind::Pad, {n.slice(n.x({3, 6}), 1, 1, 5), n.ints({0, 1, 0, 1})})}));
}

TEST(LoopNest, OfAGatherReadsByIndices) {
  for (const int64_t axis : {0, 1, 2}) {
    Net n;
    const auto indices = n.reshape(n.ints({2, 0, 1, 1, 2, 0}), {3, 2});
    const auto y = n.add(OpKind::Gather, {n.x({3, 4, 5}), indices}, {{"axis", axis}});
    const auto graph = n.with({n.add(OpKind::Exp, {y})});
    EXPECT_FALSE(nest_of(graph));
    expect_agreement(graph);
  }
}

TEST(LoopNest, OfATableOfPlacesLoadsNothing) {
  for (const OpKind op : {OpKind::ArgMax, OpKind::ArgMin}) {
    Net n;
    const auto graph = n.with({n.add(op, {n.x({3, 7})}, {{"axis", int64_t{1}}})});
    const auto nest = nest_of(graph);
    ASSERT_TRUE(nest);
    EXPECT_EQ(nest->loads.size(), 1u) << to_text(*nest);
    expect_agreement(graph);
  }
}

TEST(LoopNest, OfATriangleComparesPlaces) {
  for (const int64_t upper : {0, 1}) {
    Net n;
    const auto y =
        n.add(OpKind::Trilu, {n.x({2, 150, 120}), n.reshape(n.ints({-3}), {})}, {{"upper", upper}});
    const auto nest = nest_of(n.with({y}));
    ASSERT_TRUE(nest);
    EXPECT_EQ(nest->loads.size(), 1u) << to_text(*nest);
  }
  Net n;
  expect_agreement(n.with({n.add(OpKind::Trilu, {n.x({2, 5, 7})})}));
}

// fp32 holds no more integers than those below 2^24.
TEST(LoopNest, ComputesOnLargeIntegersAsWholeNumbers) {
  for (const Dtype dtype : {Dtype::i32, Dtype::i64}) {
    Net sum;
    Net total;
    Net cut;
    expect_exact(sum.with({sum.add(OpKind::Add, {sum.x({40}, dtype), sum.x({40}, dtype)})}));
    expect_exact(
        total.with({total.add(OpKind::ReduceSum, {total.x({40}, dtype), total.ints({0})})}));
    expect_exact(cut.with({cut.add(OpKind::Cast, {cut.x({40}, dtype)}, {{"to", int64_t{3}}})}));
  }
}

// Floats would stop at the ends of the type.
TEST(LoopNest, WrapsArithmeticThatMayLeaveATypeOf8Bits) {
  for (const Dtype dtype : {Dtype::i8, Dtype::u8}) {
    Net sum;
    Net product;
    Net total;
    Net turned;
    Net chosen;
    expect_exact(sum.with({sum.add(OpKind::Add, {sum.x({40}, dtype), sum.x({40}, dtype)})}));
    expect_exact(product.with(
        {product.add(OpKind::MatMul, {product.x({4, 3}, dtype), product.x({3, 4}, dtype)})}));
    expect_exact(
        total.with({total.add(OpKind::ReduceSum, {total.x({40}, dtype), total.ints({0})})}));
    const int64_t other = onnx_type_of(dtype == Dtype::i8 ? Dtype::u8 : Dtype::i8);
    expect_exact(turned.with({turned.add(OpKind::Cast, {turned.x({40}, dtype)}, {{"to", other}})}));
    const auto least = chosen.add(OpKind::Min, {chosen.x({4, 3}, dtype), chosen.x({4, 3}, dtype)});
    expect_exact(chosen.with({chosen.add(OpKind::ReduceMax, {least, chosen.ints({1})})}));
  }
}

TEST(LoopNest, OfElementsOfNothingIsWhatTheyStartFrom) {
  Net product;
  Net sum;
  Net padded;
  expect_agreement(
      product.with({product.add(OpKind::MatMul, {product.x({2, 0}), product.x({0, 3})})}));
  expect_agreement(sum.with({sum.add(OpKind::ReduceSum, {sum.x({3, 0}), sum.ints({1})})}));
  expect_agreement(
      padded.with({padded.add(OpKind::Pad, {padded.x({0, 3}), padded.ints({1, 0, 1, 0})})}));
}

TEST(LoopNest, OfSmallIntegersThatStaySmall) {
  Net n;
  const auto as = [&](graph::TensorId id, int64_t type) {
    return n.add(OpKind::Cast, {id}, {{"to", type}});
  };
  const auto wide =
      n.add(OpKind::Add, {as(n.x({4}, Dtype::u8), 7), as(n.x({4}, Dtype::boolean), 7)});
  expect_agreement(
      n.with({n.add(OpKind::Mul, {wide, as(n.x({4}, Dtype::i8), 7)}), as(n.x({4}), 6)}));
}

TEST(LoopNest, ComparesLargeIntegersExactly) {
  Net small;
  Net large;
  expect_exact(
      small.with({small.add(OpKind::Equal, {small.x({4}, Dtype::i64), small.ints({0, 1, 2, 3})})}));
  expect_exact(large.with(
      {large.add(OpKind::Less, {large.x({40}, Dtype::i64), large.x({40}, Dtype::i64)})}));
}

TEST(LoopNest, HasAxesWhoseElementsGpusCount) {
  const auto exp = [](const Shape& shape) {
    Net n;
    return n.with({n.add(OpKind::Exp, {n.x(shape)})});
  };
  constexpr int64_t kLong = int64_t{1} << 32;
  EXPECT_EQ(nest_of(exp({1 << 15, 1 << 15}))->axes, (Sizes{1 << 30}));
  EXPECT_EQ(nest_of(exp({1 << 16, 1 << 16}))->axes, (Sizes{1 << 16, 1 << 16}));
  EXPECT_EQ(nest_of(exp({kLong}))->axes, (Sizes{1 << 12, 1 << 20}));
}

TEST(LoopNest, RepeatsAReductionThatAnElementSharesWithOthers) {
  Net n;
  const auto x = n.x({8, 40});
  const auto sum = n.add(OpKind::ReduceSum, {x, n.ints({1})});  // keeps its axis
  const auto off = n.add(OpKind::Sub, {x, sum});
  const auto nest = nest_of(n.with({off}));
  ASSERT_TRUE(nest);
  EXPECT_TRUE(nest->repeats_reductions(16));
  EXPECT_FALSE(nest->repeats_reductions(40)) << "forty terms are not more than forty";
}

TEST(LoopNest, RepeatsAReductionWithinAnother) {
  Net n;
  const auto x = n.x({8, 40});
  const auto off = n.add(OpKind::Sub, {x, n.add(OpKind::ReduceSum, {x, n.ints({1})})});
  const auto nest = nest_of(n.with({n.add(OpKind::ReduceMax, {off, n.ints({1})})}));
  ASSERT_TRUE(nest);
  EXPECT_TRUE(nest->repeats_reductions(16));
}

TEST(LoopNest, RepeatsNoReductionThatEveryElementHasOfItsOwn) {
  Net n;
  const auto x = n.x({8, 40});
  const auto sum = n.add(OpKind::ReduceSum, {x, n.ints({1})});
  const auto nest = nest_of(n.with({n.add(OpKind::Add, {sum, n.x({8, 1})})}));
  ASSERT_TRUE(nest);
  EXPECT_FALSE(nest->repeats_reductions(16));
}
}  // namespace
}  // namespace warploom::loopnest
