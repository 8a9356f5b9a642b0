// The fast reference against the naive one, rows against the whole, magnitudes against their
// definition.
#include "graph/reference.h"
#include <gtest/gtest.h>
#include <cmath>
#include "base/random.h"
#include "builder.h"
#include "naive.h"

namespace warploom::graph {
namespace {
using I = int64_t;

struct Data {
  std::vector<std::vector<std::byte>> bytes;
  std::vector<Bytes> spans;
};

Data random_inputs(const Graph& graph, uint64_t seed = 1) {
  Data data;
  Random random(seed);
  for (TensorId id : graph.inputs) {
    const Tensor& tensor = graph.tensor(id);
    data.bytes.emplace_back(static_cast<size_t>(byte_count(tensor)));
    for (I i = 0; i < element_count(tensor.shape); ++i) {
      const double value =
          is_float(tensor.dtype) ? 4 * random.uniform() - 2 : static_cast<double>(random.below(2));
      store_from_double(tensor.dtype, data.bytes.back().data(), static_cast<size_t>(i), value);
    }
  }
  for (const auto& bytes : data.bytes) data.spans.emplace_back(bytes);
  return data;
}

void expect_close(const std::vector<double>& a, const std::vector<double>& b,
                  const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (size_t i = 0; i < a.size(); ++i)
    ASSERT_NEAR(a[i], b[i], 1e-12 * (1 + std::fabs(b[i]))) << what << " at " << i;
}

// Fast = naive; every cut into rows gives the same numbers, with and without magnitudes.
void check(Builder& b) {
  const auto graph = b.finish();
  ASSERT_TRUE(graph) << graph.error().message << graph.error().found;
  const std::string text = to_text(*graph);
  const Data data = random_inputs(*graph);
  EvalOptions values;
  values.magnitudes = false;
  const auto naive = evaluate_naive(*graph, data.spans);
  const auto fast = evaluate(*graph, data.spans);
  ASSERT_TRUE(naive && fast) << text;
  for (size_t o = 0; o < naive->size(); ++o) {
    expect_close((*fast)[o], (*naive)[o], text);
    const Rows rows = rows_of(*graph, static_cast<int>(o));
    ASSERT_EQ(rows.count * rows.elements, static_cast<I>((*naive)[o].size())) << text;
    for (const auto& [begin, end] : {std::pair<I, I>{0, rows.count},
                                     {rows.count / 3, rows.count / 3 + (rows.count + 1) / 2},
                                     {rows.count - std::min<I>(1, rows.count), rows.count}}) {
      const auto part =
          evaluate_magnitude_rows(*graph, data.spans, static_cast<int>(o), begin, end, values);
      const auto both =
          evaluate_magnitude_rows(*graph, data.spans, static_cast<int>(o), begin, end);
      ASSERT_TRUE(part && both) << text;
      const std::vector<double> wanted((*naive)[o].begin() + begin * rows.elements,
                                       (*naive)[o].begin() + end * rows.elements);
      expect_close(part->value, wanted, text);
      EXPECT_TRUE(part->magnitude.empty());
      expect_close(both->value, wanted, text);
      ASSERT_EQ(both->magnitude.size(), wanted.size());
    }
  }
}

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

std::map<std::string, Attribute> window(std::vector<I> kernel, std::vector<I> strides,
                                        std::vector<I> pads, std::vector<I> dilations) {
  return {{"kernel_shape", kernel}, {"strides", strides}, {"pads", pads}, {"dilations", dilations}};
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
        auto attributes = group == 0   ? window({3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1})
                          : group == 1 ? window({2, 3}, {2, 3}, {0, 1, 1, 2}, {2, 1})
                                       : window({4, 2}, {3, 2}, {3, 1, 0, 1}, {1, 1});
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

TEST(Rows, AreAsFineAsIndependenceAllows) {
  Builder b("mm");
  b.output(b.add(OpKind::MatMul,
                 {b.input("a", Dtype::f32, {16, 1024, 32}), b.input("b", Dtype::f32, {32, 768})}));
  EXPECT_EQ(rows_of(*b.finish()).count, 16 * 1024);
  Builder c("softmax");
  c.output(c.add(OpKind::Softmax, {c.input("x", Dtype::f32, {16, 1024, 768})}, {{"axis", I{1}}}));
  EXPECT_EQ(rows_of(*c.finish()).count, 16);
  EXPECT_TRUE(rows_of(*c.finish()).independent);
  Builder d("first");
  d.output(d.add(OpKind::Softmax, {d.input("x", Dtype::f32, {16, 1024})}, {{"axis", I{0}}}));
  EXPECT_FALSE(rows_of(*d.finish()).independent);
}

TEST(Rows, DependWhenEveryRowNeedsAnInnerProduct) {
  Builder b("xyz");
  const TensorId yz = b.add(
      OpKind::MatMul, {b.input("y", Dtype::f32, {64, 64}), b.input("z", Dtype::f32, {64, 64})});
  b.output(b.add(OpKind::MatMul, {b.input("x", Dtype::f32, {64, 64}), yz}));
  EXPECT_FALSE(rows_of(*b.finish()).independent);
  check(b);
}

TEST(Rows, OfACumulativeSumAreItsLines) {
  for (const I axis : {0, 1, 2}) {
    Builder b("prefixes");
    b.output(b.add(OpKind::CumSum,
                   {b.input("x", Dtype::f32, {6, 7, 8}), b.integers("a", std::array{axis})}));
    const Rows rows = rows_of(*b.finish());
    EXPECT_EQ(rows.count, axis == 2 ? 42 : 6) << axis;
    EXPECT_EQ(rows.independent, axis > 0) << axis;
  }
}

TEST(Magnitude, OfACumulativeSumIsThatOfAbsoluteValues) {
  Builder b("prefixes");
  const TensorId x = b.add(OpKind::Neg, {b.input("x", Dtype::f32, {3, 50})});
  b.output(b.add(OpKind::CumSum, {x, b.integers("a", std::array{I{1}})}));
  const auto graph = b.finish();
  const Data data = random_inputs(*graph);
  const auto both = evaluate_magnitude_rows(*graph, data.spans, 0, 0, 3);
  for (size_t i = 0, k = 0; i < 3; ++i)
    for (double sum = 0; k < 50 * (i + 1); ++k) {  // a negation may round, too: |x| each
      sum += 2 * std::fabs(load_as_double(Dtype::f32, data.bytes[0].data(), k));
      EXPECT_NEAR(both->magnitude[k], sum, 1e-9);
    }
}

TEST(Magnitude, OfAMatMulIsTheProductOfAbsoluteValues) {
  Builder b("mm");
  b.output(b.add(OpKind::MatMul,
                 {b.input("a", Dtype::f32, {17, 300}), b.input("b", Dtype::f32, {300, 11})}));
  const auto graph = b.finish();
  Data data = random_inputs(*graph);
  const auto both = evaluate_magnitude_rows(*graph, data.spans, 0, 0, 17);
  for (auto& bytes : data.bytes)
    for (size_t i = 0; i < bytes.size() / 4; ++i)
      store_from_double(Dtype::f32, bytes.data(), i,
                        std::fabs(load_as_double(Dtype::f32, bytes.data(), i)));
  expect_close(both->magnitude, (*evaluate_naive(*graph, data.spans))[0], "|A||B|");
}

TEST(Magnitude, OfAConvolutionAndASumIsThatOfAbsoluteValues) {
  for (const bool sum : {false, true}) {
    Builder b("conv");
    const TensorId x = b.input("x", Dtype::f32, {2, 3, 8, 8});
    auto attributes = window({3, 3}, {2, 1}, {1, 1, 1, 1}, {1, 1});
    attributes["group"] = I{1};
    if (sum)
      b.output(b.add(OpKind::ReduceSum, {x}, {{"axes", std::vector<I>{2}}}));
    else
      b.output(b.add(OpKind::Conv, {x, b.input("w", Dtype::f32, {4, 3, 3, 3})}, attributes));
    const auto graph = b.finish();
    Data data = random_inputs(*graph);
    const auto both = evaluate_magnitude_rows(*graph, data.spans, 0, 0, rows_of(*graph).count);
    for (auto& bytes : data.bytes)
      for (size_t i = 0; i < bytes.size() / 4; ++i)
        store_from_double(Dtype::f32, bytes.data(), i,
                          std::fabs(load_as_double(Dtype::f32, bytes.data(), i)));
    expect_close(both->magnitude, (*evaluate_naive(*graph, data.spans))[0], "|x||w|");
  }
}

TEST(Magnitude, OfWhatAMaskOfInfinityHidesIsNone) {
  Builder b("masked");
  const auto x = b.input("x", Dtype::f32, {4, 6});
  const auto hidden =
      b.constant("hidden", Dtype::boolean, {6}, std::vector<double>{0, 0, 1, 0, 1, 0});
  const auto far = b.constant("far", Dtype::f32, {}, std::vector<double>{-HUGE_VAL});
  const auto shown = b.add(OpKind::Where, {hidden, far, x});
  b.output(b.add(OpKind::Exp, {b.add(OpKind::Sub, {shown, x})}));
  b.output(b.add(OpKind::Softmax, {shown}));
  const auto graph = b.finish();
  ASSERT_TRUE(graph) << describe(graph.error());
  const Data data = random_inputs(*graph);
  for (const int output : {0, 1}) {
    const auto both = evaluate_magnitude_rows(*graph, data.spans, output, 0, 4);
    ASSERT_TRUE(both) << describe(both.error());
    for (size_t i = 0; i < both->value.size(); ++i) {
      const bool seen = i % 6 != 2 && i % 6 != 4;
      EXPECT_EQ(both->value[i] > 0, seen) << i;
      EXPECT_EQ(both->magnitude[i] > 0, seen) << i;
      EXPECT_LT(both->magnitude[i], 100) << i;
    }
  }
}

// log(0) is infinite and does not move: what max keeps of the other side has the other side's
// bound.
TEST(Magnitude, OfWhatWinsOverInfinityIsItsOwn) {
  Builder b("floored");
  const auto x = b.input("x", Dtype::f32, {8, 8});
  const auto y = b.input("y", Dtype::f32, {8, 8});
  const auto far = b.add(OpKind::Log, {b.add(OpKind::Relu, {x})});
  b.output(b.add(OpKind::Max, {far, y}));
  b.output(b.add(OpKind::Relu, {far}));
  b.output(b.add(OpKind::Exp, {far}));
  const auto graph = b.finish();
  ASSERT_TRUE(graph) << describe(graph.error());
  const Data data = random_inputs(*graph);
  for (const int output : {0, 1, 2}) {
    const auto both = evaluate_magnitude_rows(*graph, data.spans, output, 0, 8);
    ASSERT_TRUE(both) << describe(both.error());
    for (size_t i = 0; i < both->value.size(); ++i)
      EXPECT_LT(both->magnitude[i], 100) << output << " " << i;
  }
}

TEST(Magnitude, BoundsWhatFp32Loses) {
  Builder b(
      "mlp");  // softmax(gelu(x w + b) v), evaluated below with every intermediate rounded to fp32
  const TensorId mm = b.add(
      OpKind::MatMul, {b.input("x", Dtype::f32, {8, 64}), b.input("w", Dtype::f32, {64, 32})});
  const TensorId h =
      b.add(OpKind::Gelu, {b.add(OpKind::Add, {mm, b.input("b", Dtype::f32, {32})})});
  b.output(
      b.add(OpKind::Softmax, {b.add(OpKind::MatMul, {h, b.input("v", Dtype::f32, {32, 10})})}));
  const auto graph = b.finish();
  const Data data = random_inputs(*graph);
  const auto both = evaluate_magnitude_rows(*graph, data.spans, 0, 0, 8);
  ASSERT_TRUE(both);
  const auto in = [&](int i, int k) {
    return static_cast<float>(load_as_double(Dtype::f32, data.bytes[static_cast<size_t>(i)].data(),
                                             static_cast<size_t>(k)));
  };
  for (int r = 0; r < 8; ++r) {
    float hidden[32];
    float y[10];
    float top = -INFINITY;
    float sum = 0;
    for (int j = 0; j < 32; ++j) {
      float s = 0;
      for (int k = 0; k < 64; ++k) s += in(0, r * 64 + k) * in(1, k * 32 + j);
      s += in(2, j);
      hidden[j] = 0.5f * s * (1 + std::erf(s * 0.70710678f));
    }
    for (int j = 0; j < 10; ++j) {
      y[j] = 0;
      for (int k = 0; k < 32; ++k) y[j] += hidden[k] * in(3, k * 10 + j);
      top = std::max(top, y[j]);
    }
    for (float& value : y) sum += value = std::exp(value - top);
    for (int j = 0; j < 10; ++j) {
      const auto at = static_cast<size_t>(r * 10 + j);
      const double error = std::fabs(static_cast<double>(y[j] / sum) - both->value[at]);
      EXPECT_LE(error, 64 * 0x1p-24 * both->magnitude[at] + 0x1p-126);
      EXPECT_LT(both->magnitude[at], 2e4);
    }
  }
}

TEST(Reference, OverflowOnTheWayIsSeenAndAtTheEndIsNot) {
  const auto overflowed = [](float x, Dtype dtype, bool twice) {
    Builder b("t");
    TensorId y = b.add(OpKind::Exp, {b.add(OpKind::Cast, {b.input("x", Dtype::f32, {1})},
                                           {{"to", int64_t{onnx_type_of(dtype)}}})});
    b.output(twice ? b.add(OpKind::Log, {y}) : y);
    const auto bytes = std::as_bytes(std::span(&x, 1));
    return evaluate_magnitude_rows(*b.finish(), std::vector<Bytes>{bytes}, 0, 0, 1)->overflowed;
  };
  EXPECT_FALSE(overflowed(80, Dtype::f32, true));
  EXPECT_TRUE(overflowed(90, Dtype::f32, true));
  EXPECT_FALSE(overflowed(90, Dtype::f32, false));
  EXPECT_TRUE(overflowed(12, Dtype::f16, true));
  EXPECT_FALSE(overflowed(12, Dtype::bf16, true));
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
