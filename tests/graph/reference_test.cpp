// The fast reference against the naive one, and rows against the whole.
#include "graph/reference.h"
#include <gtest/gtest.h>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "builder.h"
#include "graph/graph.h"
#include "reference_checks.h"

namespace warploom::graph {
namespace {
using I = int64_t;

TEST(Reference, MatMulShapes) {
  for (const auto& [a, c] : std::vector<std::pair<Shape, Shape>>{{{5, 7}, {7, 3}},
                                                                 {{30, 300}, {300, 50}},
                                                                 {{1, 600}, {600, 1}},
                                                                 {{3, 400}, {400, 1}},
                                                                 {{9}, {9}},
                                                                 {{9}, {4, 9, 2}},
                                                                 {{4, 3, 9}, {9}},
                                                                 {{2, 3, 8, 5}, {5, 6}},
                                                                 {{2, 1, 8, 5}, {3, 5, 6}},
                                                                 {{3, 8, 5}, {2, 1, 5, 6}},
                                                                 {{4, 1, 5}, {5, 6}},
                                                                 {{6, 1, 4}, {6, 4, 3}},
                                                                 {{1, 1, 4}, {3, 4, 2}},
                                                                 {{3, 0}, {0, 2}},
                                                                 {{0, 3}, {3, 2}},
                                                                 {{5, 1}, {1, 7}}})
    for (Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::f16, Dtype::f64, Dtype::i32}) {
      Builder b("mm");
      b.output(b.add(OpKind::MatMul, {b.input("a", dtype, a), b.input("b", dtype, c)}));
      check(b);
    }
}

TEST(Reference, GemmTransposesScalesAndAdds) {
  for (I ta : {0, 1})
    for (I tb : {0, 1})
      for (const Shape& c : std::vector<Shape>{{}, {6}, {1, 6}, {4, 1}, {4, 6}}) {
        Builder b("gemm");
        b.output(b.add(
            OpKind::Gemm,
            {b.input("a", Dtype::f32, ta ? Shape{5, 4} : Shape{4, 5}),
             b.input("b", Dtype::f32, tb ? Shape{6, 5} : Shape{5, 6}), b.input("c", Dtype::f32, c)},
            {{"transA", ta}, {"transB", tb}, {"alpha", 0.5}, {"beta", -2.0}}));
        check(b);
      }
}

TEST(Reference, SoftmaxOverEveryAxis) {
  for (OpKind op : {OpKind::Softmax, OpKind::LogSoftmax})
    for (I axis : {0, 1, 2, -1}) {
      Builder b("softmax");
      b.output(b.add(op, {b.input("x", Dtype::f32, {4, 5, 6})}, {{"axis", axis}}));
      check(b);
    }
}

TEST(Reference, ElementwiseBroadcasts) {
  Builder b("add");
  b.output(
      b.add(OpKind::Mul, {b.input("x", Dtype::f32, {3, 1, 5}), b.input("y", Dtype::f32, {4, 1})}));
  check(b);
  Builder c("long");
  c.output(c.add(OpKind::Sub, {c.input("x", Dtype::f16, {10000}), c.input("y", Dtype::f16, {1})}));
  check(c);
  Builder d("scalar");
  d.output(d.add(OpKind::Exp, {d.input("x", Dtype::f32, {})}));
  check(d);
}

TEST(Reference, ChainsOfMovementAndProducts) {
  Builder b(
      "attention");  // softmax(q kᵀ) v by heads, with everything that moves elements on the way
  const TensorId x = b.input("x", Dtype::f32, {2, 6, 12});
  const TensorId heads = b.add(OpKind::Reshape, {x, b.integers("s", std::vector<I>{2, 6, 3, 4})});
  const TensorId q = b.add(OpKind::Transpose, {heads}, {{"perm", std::vector<I>{0, 2, 1, 3}}});
  const TensorId k = b.add(OpKind::Transpose, {heads}, {{"perm", std::vector<I>{0, 2, 3, 1}}});
  const TensorId p = b.add(OpKind::Softmax, {b.add(OpKind::MatMul, {q, k})});
  const TensorId o = b.add(OpKind::Transpose, {b.add(OpKind::MatMul, {p, q})},
                           {{"perm", std::vector<I>{0, 2, 1, 3}}});
  b.output(b.add(OpKind::Reshape, {o, b.integers("t", std::vector<I>{12, 12})}));
  b.output(p);
  check(b);
}

TEST(Reference, SlicesConcatenationsGathersAndExpansions) {
  Builder b("moves");
  const TensorId x = b.input("x", Dtype::f32, {6, 8});
  const TensorId s =
      b.add(OpKind::Slice,
            {x, b.integers("s", std::vector<I>{5, 1}), b.integers("e", std::vector<I>{0, 7}),
             b.integers("a", std::vector<I>{0, 1}), b.integers("p", std::vector<I>{-2, 3})});
  b.output(s);
  b.output(b.add(OpKind::Concat, {s, s, b.add(OpKind::Exp, {s})}, {{"axis", I{0}}}));
  b.output(b.add(OpKind::Gather, {b.add(OpKind::Relu, {x}), b.input("i", Dtype::i64, {2, 3})},
                 {{"axis", I{1}}}));
  b.output(
      b.add(OpKind::Relu, {b.add(OpKind::Expand, {s, b.integers("w", std::vector<I>{2, 1, 1})})}));
  b.output(b.add(OpKind::Unsqueeze,
                 {b.add(OpKind::Transpose, {x}), b.integers("u", std::vector<I>{0})}));
  b.output(b.add(OpKind::Flatten, {b.add(OpKind::Transpose, {x})}, {{"axis", I{0}}}));
  check(b);
}

TEST(Evaluator, GathersZerosFromAnEmptyAxis) {
  Builder b("empty");
  b.output(b.add(OpKind::Gather, {b.input("x", Dtype::f32, {0, 3}), b.input("i", Dtype::i64, {2})},
                 {{"axis", I{0}}}));
  const auto graph = b.finish();
  ASSERT_TRUE(graph);
  const Data data = random_inputs(*graph);
  const auto found = evaluate(*graph, data.spans);
  ASSERT_TRUE(found);
  EXPECT_EQ((*found)[0], std::vector<double>(6, 0.0));
}

TEST(Reference, CastsRoundAndIntegersWrap) {
  Builder b("casts");
  const TensorId x = b.input("x", Dtype::f32, {50});
  b.output(b.add(OpKind::Cast, {x}, {{"to", I{16}}}));
  b.output(b.add(OpKind::Cast, {x}, {{"to", I{6}}}));
  b.output(b.add(OpKind::Cast, {x}, {{"to", I{9}}}));
  b.output(b.add(OpKind::Cast, {x}, {{"to", I{17}}}));
  check(b);
  Builder c("wrap");
  const TensorId y = c.constant("y", Dtype::i8, {2}, std::vector<double>{100, -100});
  const TensorId sum = c.add(OpKind::Add, {y, y});
  c.output(sum);
  EXPECT_EQ((*evaluate(*c.finish(), {}))[0], (std::vector<double>{-56, 56}));
}

TEST(Store, WhatAnIntegerCannotHoldSaturates) {
  const double inf = std::numeric_limits<double>::infinity();
  const auto stored = [](Dtype dtype, double value) {
    int64_t bytes = 0;
    store_from_double(dtype, &bytes, 0, value);
    return load_as_double(dtype, &bytes, 0);
  };
  EXPECT_EQ(stored(Dtype::u8, -3.4e38), 0);
  EXPECT_EQ(stored(Dtype::u8, 256), 255);
  EXPECT_EQ(stored(Dtype::i8, inf), 127);
  EXPECT_EQ(stored(Dtype::i32, -inf), -0x1p31);
  EXPECT_EQ(stored(Dtype::i64, 0x1p63), 0x1p63 - 1024);
  EXPECT_EQ(stored(Dtype::i32, std::nan("")), 0);
  EXPECT_EQ(stored(Dtype::boolean, -7), 1);
  EXPECT_EQ(stored(Dtype::i32, -2.9), -2);
}

TEST(Reference, DequantizeLinearScalesAlongItsAxis) {
  Builder b("quantized");
  const TensorId x =
      b.constant("x", Dtype::i8, {2, 3}, std::vector<double>{-128, 0, 127, 10, 20, 30});
  const TensorId scale = b.constant("scale", Dtype::f32, {3}, std::vector<double>{0.5, 2, 0.25});
  const TensorId zero = b.constant("zero", Dtype::i8, {3}, std::vector<double>{0, -1, 7});
  const TensorId one = b.constant("one", Dtype::f32, {}, std::vector<double>{0.5});
  b.output(b.add(OpKind::DequantizeLinear, {x, scale, zero}, {{"axis", I{-1}}}));
  b.output(b.add(OpKind::DequantizeLinear, {x, one}));
  const auto graph = *b.finish();
  const auto values = *evaluate(graph, {});
  EXPECT_EQ(values[0], (std::vector<double>{-64, 2, 30, 5, 42, 5.75}));
  EXPECT_EQ(values[1], (std::vector<double>{-64, 0, 63.5, 5, 10, 15}));
  EXPECT_EQ(graph.nodes.size(), 2u) << "what is stored narrow stays so";
}

TEST(Reference, DequantizeLinearScalesBlocksAlongItsAxis) {
  Builder b("quantized");
  const TensorId x =
      b.constant("x", Dtype::i8, {2, 4}, std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8});
  const TensorId wide =
      b.constant("wide", Dtype::f32, {2, 2}, std::vector<double>{1, 10, 100, 1000});
  const TensorId high =
      b.constant("high", Dtype::f32, {1, 4}, std::vector<double>{1, 10, 100, 1000});
  const TensorId zero = b.constant("zero", Dtype::i8, {2, 2}, std::vector<double>{0, 1, 2, 3});
  b.output(
      b.add(OpKind::DequantizeLinear, {x, wide, zero}, {{"axis", I{1}}, {"block_size", I{2}}}));
  b.output(b.add(OpKind::DequantizeLinear, {x, high}, {{"axis", I{0}}, {"block_size", I{2}}}));
  const auto values = *evaluate(*b.finish(), {});
  EXPECT_EQ(values[0], (std::vector<double>{1, 2, 20, 30, 300, 400, 4000, 5000}));
  EXPECT_EQ(values[1], (std::vector<double>{1, 20, 300, 4000, 5, 60, 700, 8000}));
}

TEST(Reference, ScaledMatMulScalesBlocksOfBothOperands) {
  Builder b("scaled");
  const TensorId a =
      b.constant("a", Dtype::e4m3, {2, 4}, std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8});
  const TensorId w =
      b.constant("w", Dtype::e4m3, {4, 2}, std::vector<double>{1, 0, 0, 1, 1, 1, 2, 0});
  const TensorId rows =
      b.constant("rows", Dtype::f32, {2, 2}, std::vector<double>{1, 2, 3, 4});  // blocks of 1 by 2
  const TensorId squares =
      b.constant("squares", Dtype::f32, {2, 1}, std::vector<double>{10, 100});  // of 2 by 2
  b.output(b.add(OpKind::ScaledMatMul, {a, w, rows, squares}, {{"output_dtype", I{1}}}));
  const auto values = *evaluate(*b.finish(), {});
  EXPECT_EQ(values[0], (std::vector<double>{10 * 1 + 200 * 11, 10 * 2 + 200 * 3, 30 * 5 + 400 * 23,
                                            30 * 6 + 400 * 7}));
}

TEST(Reference, ConvolutionsOfEveryGeometry) {
  struct Geometry {
    Shape in;
    Shape weights;
    std::vector<I> strides;
    std::vector<I> pads;
    std::vector<I> dilations;
    I group;
  };

  for (const Geometry& g : std::vector<Geometry>{
           {{2, 3, 9}, {5, 3, 3}, {1}, {0, 0}, {1}, 1},
           {{2, 3, 9, 8}, {5, 3, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1},
           {{1, 4, 9, 11}, {6, 2, 3, 2}, {2, 3}, {0, 2, 1, 0}, {1, 2}, 2},
           {{2, 4, 7, 7}, {4, 1, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 4},
           {{2, 4, 7, 7}, {8, 1, 3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, 4},
           {{3, 4, 5, 6}, {2, 2, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 2},
           {{1, 2, 5, 6, 4}, {3, 2, 2, 3, 2}, {1, 2, 1}, {1, 0, 0, 1, 1, 1}, {1, 1, 1}, 1},
           {{2, 40, 6, 6}, {30, 40, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1}})
    for (const bool inner : {false, true}) {
      Builder b("conv");
      auto attributes =
          window(Shape(g.weights.begin() + 2, g.weights.end()), g.strides, g.pads, g.dilations);
      attributes["group"] = g.group;
      TensorId x = b.input("x", Dtype::f32, g.in);
      TensorId w = b.input("w", Dtype::f32, g.weights);
      if (inner) {
        x = b.add(OpKind::Exp, {x});
        w = b.add(OpKind::Relu, {w});
      }
      b.output(b.add(OpKind::Conv, {x, w, b.input("b", Dtype::f32, {g.weights[0]})}, attributes));
      check(b);
    }
}

TEST(Reference, ConvolutionsOfImagesTooLargeToBePaddedTogether) {
  constexpr I kPlaces = 9'000'000;
  std::vector<float> x(3 * kPlaces);
  std::vector<float> w = {2};
  for (size_t image = 0; image < 3; ++image) {
    x[image * kPlaces] = static_cast<float>(image + 1);
    x[(image + 1) * kPlaces - 1] = static_cast<float>(10 * (image + 1));
  }
  Builder b("large");
  const TensorId images = b.input("x", Dtype::f32, {3, 1, kPlaces});
  const TensorId weights = b.input("w", Dtype::f32, {1, 1, 1});
  b.output(b.add(OpKind::Conv, {images, weights}, window({1}, {kPlaces - 1}, {0, 0}, {1})));
  const auto values = evaluate(
      *b.finish(), std::vector<Bytes>{std::as_bytes(std::span(x)), std::as_bytes(std::span(w))});
  ASSERT_TRUE(values);
  EXPECT_EQ((*values)[0], (std::vector<double>{2, 20, 4, 40, 6, 60}));
}

TEST(Reference, PoolsOfEveryGeometry) {
  for (OpKind op : {OpKind::MaxPool, OpKind::AveragePool, OpKind::LpPool})
    for (I ceil : {0, 1})
      for (I group = 0; group < 3; ++group) {
        Builder b("pool");
        auto attributes = window({3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1});
        if (group == 1) attributes = window({2, 3}, {2, 3}, {0, 1, 1, 2}, {2, 1});
        if (group == 2) attributes = window({4, 2}, {3, 2}, {3, 1, 0, 1}, {1, 1});
        attributes["ceil_mode"] = ceil;
        b.output(
            b.add(op, {b.add(OpKind::Exp, {b.input("x", Dtype::f32, {2, 3, 9, 10})})}, attributes));
        check(b);
      }
}

TEST(Reference, ReductionsOverAnyAxes) {
  for (OpKind op : {OpKind::ReduceSum, OpKind::ReduceMax, OpKind::ReduceMin, OpKind::ReduceProd,
                    OpKind::ReduceMean})
    for (const auto& axes :
         std::vector<std::vector<I>>{{0}, {1}, {-1}, {0, 2}, {1, 2}, {0, 1, 2}, {}})
      for (I keep : {0, 1}) {
        Builder b("reduce");
        const TensorId x = b.add(OpKind::Transpose, {b.input("x", Dtype::f32, {3, 4, 5})},
                                 {{"perm", std::vector<I>{0, 2, 1}}});
        const TensorId y = b.add(op, {x}, {{"axes", axes}, {"keepdims", keep}});
        b.output(b.add(OpKind::Mul, {y, y}));
        check(b);
      }
  Builder b("integers");
  b.output(
      b.add(OpKind::ReduceMax, {b.input("x", Dtype::i32, {3, 4})}, {{"axes", std::vector<I>{1}}}));
  b.output(b.add(OpKind::ReduceMin, {b.input("y", Dtype::boolean, {3, 4})},
                 {{"axes", std::vector<I>{1}}}));
  check(b);
}

TEST(Reference, CumulativeSumsAlongEveryAxis) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f64, Dtype::bf16, Dtype::i32})
    for (const I axis : {0, 1, 2, -1})
      for (const I reverse : {0, 1})
        for (const I exclusive : {0, 1}) {
          Builder b("prefixes");
          const TensorId x = b.add(OpKind::Transpose, {b.input("x", dtype, {3, 4, 5})},
                                   {{"perm", std::vector<I>{0, 2, 1}}});
          b.output(b.add(OpKind::CumSum, {x, b.integers("a", std::array{axis})},
                         {{"reverse", reverse}, {"exclusive", exclusive}}));
          check(b);
        }
  Builder b("lines");
  b.output(
      b.add(OpKind::CumSum, {b.input("x", Dtype::f32, {5000}), b.integers("a", std::array{I{0}})}));
  b.output(b.add(OpKind::CumSum,
                 {b.input("y", Dtype::f32, {3, 4200}), b.integers("b", std::array{I{0}})}));
  b.output(b.add(OpKind::CumSum,
                 {b.input("z", Dtype::f32, {4, 0}), b.integers("c", std::array{I{1}})},
                 {{"exclusive", I{1}}}));
  check(b);
}

TEST(Reference, PadsFillAndCrop) {
  for (const auto& pads :
       std::vector<std::vector<I>>{{1, 2, 0, 3}, {-1, 2, 1, -3}, {-2, 0, 0, -1}}) {
    Builder b("pad");
    const std::vector<double> value = {7.5};
    const TensorId x = b.add(OpKind::Exp, {b.input("x", Dtype::f32, {4, 6})});
    b.output(
        b.add(OpKind::Pad, {x, b.integers("p", pads), b.constant("v", Dtype::f32, {}, value)}));
    b.output(b.add(OpKind::Relu, {b.add(OpKind::Pad, {x, b.integers("q", pads)})}));
    check(b);
  }
}

TEST(Reference, IntegersBelowZeroStay) {
  Builder b("t");
  const TensorId y = b.constant("y", Dtype::i64, {2}, std::vector<double>{3, -3});
  b.output(b.add(OpKind::Add, {y, y}));
  EXPECT_EQ((*evaluate(*b.finish(), {}))[0], (std::vector<double>{6, -6}));
}

TEST(Reference, WrongInputsAreRefused) {
  Builder b("t");
  b.output(b.add(OpKind::Relu, {b.input("x", Dtype::f32, {4})}));
  const std::vector<std::byte> few(8);
  EXPECT_FALSE(evaluate(*b.finish(), {}));
  EXPECT_FALSE(evaluate(*b.finish(), std::vector<Bytes>{few}));
  const std::vector<std::byte> right(16);
  EXPECT_FALSE(evaluate_magnitude_rows(*b.finish(), std::vector<Bytes>{right}, 0, 2, 9));
}
}  // namespace
}  // namespace warploom::graph
