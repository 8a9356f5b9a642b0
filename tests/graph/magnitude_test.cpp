// Rows of the reference, and magnitudes against their definition.
#include <gtest/gtest.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "builder.h"
#include "graph/graph.h"
#include "graph/reference.h"
#include "naive.h"
#include "reference_checks.h"

namespace warploom::graph {
namespace {
using I = int64_t;

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
    const OutputRows rows = rows_of(*b.finish());
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
  double sum = 0;
  for (size_t k = 0; k < 150; ++k) {
    if (k % 50 == 0) sum = 0;
    // A negation may round, too: |x| each.
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

// A score of infinity times 0 is NaN, which a causal mask hides: its own error must not show.
TEST(Magnitude, OfANanThatAMaskOfInfinityHidesIsNone) {
  Builder b("masked");
  const auto x = b.input("x", Dtype::f32, {4, 6});
  const auto hidden =
      b.constant("hidden", Dtype::boolean, {6}, std::vector<double>{0, 0, 1, 0, 1, 0});
  const auto far = b.constant("far", Dtype::f32, {}, std::vector<double>{-HUGE_VAL});
  const auto none = b.add(OpKind::Sqrt, {b.add(OpKind::Neg, {b.add(OpKind::Abs, {x})})});
  const auto lost = b.add(OpKind::Where, {hidden, none, x});
  b.output(b.add(OpKind::Softmax, {b.add(OpKind::Where, {hidden, far, lost})}));
  const auto graph = b.finish();
  ASSERT_TRUE(graph) << describe(graph.error());
  const Data data = random_inputs(*graph);
  const auto both = evaluate_magnitude_rows(*graph, data.spans, 0, 0, 4);
  ASSERT_TRUE(both) << describe(both.error());
  for (size_t i = 0; i < both->value.size(); ++i)
    EXPECT_LT(both->magnitude[i], 100) << i;
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
  Builder b("mlp");  // softmax(gelu(x w + b) v), evaluated below with every intermediate rounded
                     // to fp32
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
      for (int k = 0; k < 64; ++k)
        s += in(0, r * 64 + k) * in(1, k * 32 + j);
      s += in(2, j);
      hidden[j] = 0.5f * s * (1 + std::erf(s * 0.70710678f));
    }
    for (int j = 0; j < 10; ++j) {
      y[j] = 0;
      for (int k = 0; k < 32; ++k)
        y[j] += hidden[k] * in(3, k * 10 + j);
      top = std::max(top, y[j]);
    }
    for (float& value : y)
      sum += value = std::exp(value - top);
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
}  // namespace
}  // namespace warploom::graph
