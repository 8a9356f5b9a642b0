#include <fmt/format.h>
#include <gtest/gtest.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <span>
#include <vector>
#include "../graph/builder.h"
#include "base/dtype.h"
#include "base/rows.h"
#include "graph/graph.h"
#include "graph/ranges.h"
#include "graph/reference.h"
#include "verify/coverage.h"
#include "verify/inputs.h"

namespace warploom::verify {
namespace {
std::vector<float> values(InputFamily family, int64_t count, uint64_t seed = 3, int threads = 1) {
  std::vector<float> out(static_cast<size_t>(count));
  fill({seed, 0, family, Dtype::f32}, out.data(), 0, count, threads);
  return out;
}

struct Moments {
  double mean = 0;
  double deviation = 0;
  double largest = 0;
};

Moments moments(const std::vector<float>& list) {
  Moments out;
  double squares = 0;
  for (const float x : list) {
    out.mean += x;
    squares += static_cast<double>(x) * x;
    out.largest = std::max(out.largest, std::abs(static_cast<double>(x)));
  }
  const auto n = static_cast<double>(list.size());
  out.mean /= n;
  out.deviation = std::sqrt(squares / n - out.mean * out.mean);
  return out;
}

TEST(Inputs, ASliceIsTheSameAsInTheWhole) {
  for (const InputFamily family : input_families()) {
    const auto whole = values(family, 3'000'000, 9, 3);
    std::vector<float> slice(100'000);
    const int64_t begin = (1 << 20) - 777;  // across a block's edge
    fill({9, 0, family, Dtype::f32}, slice.data(), begin, 100'000, 2);
    for (size_t i = 0; i < slice.size(); ++i)
      ASSERT_EQ(slice[i], whole[static_cast<size_t>(begin) + i]);
  }
}

TEST(Inputs, SeedsTensorsAndFamiliesDiffer) {
  EXPECT_NE(values(InputFamily::normal, 64, 1), values(InputFamily::normal, 64, 2));
  std::vector<float> other(64);
  fill({1, 1, InputFamily::normal, Dtype::f32}, other.data(), 0, 64);
  EXPECT_NE(values(InputFamily::normal, 64, 1), other);
  EXPECT_NE(values(InputFamily::normal, 64, 1), values(InputFamily::uniform, 64, 1));
}

TEST(Inputs, FamiliesHaveTheirMoments) {
  const int64_t n = 1'000'000;
  const Moments normal = moments(values(InputFamily::normal, n));
  EXPECT_NEAR(normal.mean, 0, 0.01);
  EXPECT_NEAR(normal.deviation, 1, 0.01);
  EXPECT_NEAR(moments(values(InputFamily::uniform, n)).mean, 0.5, 0.01);
  EXPECT_NEAR(moments(values(InputFamily::scaled, n)).deviation, 10, 0.1);
  EXPECT_NEAR(moments(values(InputFamily::shifted, n)).mean, 5, 0.01);
  EXPECT_NEAR(moments(values(InputFamily::shifted, n)).deviation, 1, 0.01);
  EXPECT_NEAR(moments(values(InputFamily::signs, n)).deviation, 1, 1e-3);
  EXPECT_NEAR(moments(values(InputFamily::small, n)).deviation, 1e-3, 1e-5);
  const auto outliers = values(InputFamily::outliers, n);
  const auto large =
      std::count_if(outliers.begin(), outliers.end(), [](float x) { return std::abs(x) > 10; });
  EXPECT_NEAR(static_cast<double>(large) / static_cast<double>(n) * 1024, 1, 0.1);
  EXPECT_GT(moments(outliers).largest, 1000);
}

TEST(Inputs, NeighboursAreUncorrelated) {
  const auto list = values(InputFamily::normal, 1'000'000);
  for (const size_t lag : {1, 2, 16, 64, 1024, 4096}) {
    double sum = 0;
    for (size_t i = lag; i < list.size(); ++i)
      sum += static_cast<double>(list[i]) * list[i - lag];
    EXPECT_NEAR(sum / static_cast<double>(list.size()), 0, 0.006) << "lag " << lag;
  }
}

TEST(Inputs, NarrowTypesHoldTheRoundedValue) {
  const auto exact = values(InputFamily::normal, 5000);
  for (const Dtype dtype : {Dtype::bf16, Dtype::f16, Dtype::f64, Dtype::tf32}) {
    std::vector<std::byte> narrow(5000 * static_cast<size_t>(bytes_of(dtype)));
    fill({3, 0, InputFamily::normal, dtype}, narrow.data(), 0, 5000);
    for (size_t i = 0; i < exact.size(); ++i) {
      double once = 0;
      store_from_double(dtype, &once, 0, static_cast<double>(exact[i]));
      ASSERT_EQ(load_as_double(dtype, narrow.data(), i), load_as_double(dtype, &once, 0));
    }
  }
}

template <class T>
std::vector<T> in_range(Dtype dtype, graph::Range range, InputFamily family = InputFamily::normal) {
  std::vector<T> list(10'000);
  fill({3, 0, family, dtype, range}, list.data(), 0, std::ssize(list));
  return list;
}

template <class T> void expect_ends(const std::vector<T>& list, double low, double high) {
  EXPECT_EQ(static_cast<double>(*std::ranges::min_element(list)), low);
  EXPECT_EQ(static_cast<double>(*std::ranges::max_element(list)), high);
}

TEST(Inputs, IndicesAreAllThatTheirRangeHas) {
  for (const InputFamily family : {InputFamily::normal, InputFamily::ends}) {
    expect_ends(in_range<int64_t>(Dtype::i64, {-7, 6, true}, family), -7, 6);
    expect_ends(in_range<int32_t>(Dtype::i32, {0, 1, true}, family), 0, 1);
    expect_ends(in_range<float>(Dtype::f32, {0, 31, true}, family), 0, 31);
  }
  expect_ends(in_range<int64_t>(Dtype::i64, {}), -8, 7);
  expect_ends(in_range<uint8_t>(Dtype::u8, {-5, 9, true}), 0, 9);
}

TEST(Inputs, IndicesOfVeryLongAxesStayInside) {
  const double most = 0x1p31 - 1;  // no float
  for (const InputFamily family : {InputFamily::normal, InputFamily::ends})
    for (const int64_t index : in_range<int64_t>(Dtype::i64, {0, most, true}, family)) {
      EXPECT_GE(index, 0);
      EXPECT_LE(static_cast<double>(index), most);
    }
}

TEST(Inputs, DivisorsAreNotZero) {
  const auto list = in_range<int32_t>(Dtype::i32, {-HUGE_VAL, HUGE_VAL, true, true});
  EXPECT_EQ(std::ranges::count(list, 0), 0);
  expect_ends(list, -8, 7);
}

TEST(Inputs, TheBellIsFoldedAtTheOneEndThatThereIs) {
  const auto above = in_range<float>(Dtype::f32, {2, HUGE_VAL});
  EXPECT_GE(*std::ranges::min_element(above), 2);
  EXPECT_GT(*std::ranges::max_element(above), 4);
  const auto below = in_range<float>(Dtype::f32, {-HUGE_VAL, -1});
  EXPECT_LE(*std::ranges::max_element(below), -1);
}

TEST(Inputs, NumbersOfARangeThatAreCastNeedNoRounding) {
  for (const float value : in_range<float>(Dtype::f32, {-1.1, 2.6})) {
    EXPECT_EQ(value * 4, std::trunc(value * 4));
    EXPECT_GE(value, -1);
    EXPECT_LE(value, 2.5);
  }
}

graph::Graph pointwise(graph::OpKind op, Dtype dtype = Dtype::f32) {
  graph::Builder b("one");
  b.output(b.add(op, {b.input("x", dtype, {64, 64})}));
  return *b.finish();
}

TEST(Inputs, EndsOfRangesHoldWhatTheOperatorsMind) {
  const auto drawn = [](const graph::Graph& graph) {
    std::vector<float> list(4096);
    fill(streams_of(graph, InputFamily::ends, 3)[0], list.data(), 0, std::ssize(list));
    return list;
  };
  const auto list = drawn(pointwise(graph::OpKind::Cosh));
  for (const float wanted : {0.0f, 89.0f, -89.0f, 3e19f, HUGE_VALF, -HUGE_VALF, 1e-42f})
    EXPECT_NE(std::ranges::find(list, wanted), list.end()) << wanted;
  EXPECT_TRUE(std::ranges::any_of(list, [](float x) { return std::isnan(x); }));
  EXPECT_TRUE(std::ranges::any_of(list, [](float x) { return x == 0 && std::signbit(x); }));
  EXPECT_EQ(std::ranges::count(drawn(pointwise(graph::OpKind::Exp)), 89.41f), 0);
}

TEST(Inputs, EndsAreForGraphsThatWorkElementByElement) {
  const auto judged = [](const graph::Graph& graph) {
    return contains(coverage_of(graph).families, InputFamily::ends);
  };
  EXPECT_TRUE(judged(pointwise(graph::OpKind::Acosh)));
  EXPECT_TRUE(judged(pointwise(graph::OpKind::Round)));
  EXPECT_TRUE(judged(pointwise(graph::OpKind::Tanh, Dtype::bf16)));
  EXPECT_FALSE(judged(pointwise(graph::OpKind::ReduceMax)));
  EXPECT_FALSE(judged(pointwise(graph::OpKind::Softmax)));
  graph::Builder step("a step behind rounding");
  const auto tenth = step.constant("tenth", Dtype::f32, {}, std::array{0.1});
  step.output(step.add(graph::OpKind::Round,
                       {step.add(graph::OpKind::Mul, {step.input("x", Dtype::f32, {64}), tenth})}));
  EXPECT_FALSE(judged(*step.finish()));
  graph::Builder whole("integers");
  whole.output(whole.add(graph::OpKind::Cast, {whole.input("x", Dtype::f32, {64})},
                         {{"to", int64_t{onnx_type_of(Dtype::i32)}}}));
  EXPECT_FALSE(judged(*whole.finish()));
}

TEST(Inputs, WhatTheModelSaysOfAnInputIsDrawnSo) {
  const graph::Graph graph = pointwise(graph::OpKind::Exp);
  const auto streams = streams_of(graph, InputFamily::normal, 3, {{"x", graph::Range{3, 5, true}}});
  std::vector<float> list(1000);
  fill(streams[0], list.data(), 0, std::ssize(list));
  expect_ends(list, 3, 5);
}

// Sixteen layers keep the size of what they are given, whatever family that is of.
TEST(Inputs, WeightsOfANetworkNeitherGrowNorVanish) {
  graph::Builder b("deep");
  graph::TensorId x = b.input("x", Dtype::f32, {8, 96});
  for (int layer = 0; layer < 16; ++layer)
    x = b.add(graph::OpKind::MatMul, {x, b.input(fmt::format("w{}", layer), Dtype::f32, {96, 96})});
  b.output(x);
  const graph::Graph graph = *b.finish();
  const auto norm = [](std::span<const double> list) {
    return std::sqrt(std::inner_product(list.begin(), list.end(), list.begin(), 0.0) /
                     static_cast<double>(list.size()));
  };
  for (const InputFamily family : coverage_of(graph).families) {
    if (is_wide(family)) continue;
    std::vector<std::vector<float>> made;
    std::vector<graph::Bytes> bytes;
    for (const Stream& stream : streams_of(graph, family, 3)) {
      auto& values =
          made.emplace_back(graph::element_count(graph.tensor(graph.inputs[stream.tensor]).shape));
      fill(stream, values.data(), 0, std::ssize(values));
      bytes.push_back(std::as_bytes(std::span(values)));
    }
    const double change = norm((*graph::evaluate(graph, bytes))[0]) /
                          norm(std::vector<double>(made[0].begin(), made[0].end()));
    EXPECT_GT(change, 1e-6) << name_of(family);
    EXPECT_LT(change, 1e6) << name_of(family);
  }
}

TEST(Inputs, VariancesAreNotNegative) {
  graph::Builder b("norm");
  const auto x = b.input("x", Dtype::f32, {2, 512, 3});
  const auto scale = b.input("s", Dtype::f32, {512});
  const auto shift = b.input("b", Dtype::f32, {512});
  b.output(b.add(
      graph::OpKind::BatchNormalization,
      {x, scale, shift, b.input("mean", Dtype::f32, {512}), b.input("var", Dtype::f32, {512})}));
  const auto streams = streams_of(*b.finish(), InputFamily::normal, 3);
  std::vector<float> mean(512);
  std::vector<float> variance(512);
  fill(streams[3], mean.data(), 0, 512);
  fill(streams[4], variance.data(), 0, 512);
  EXPECT_LT(*std::ranges::min_element(mean), -1);
  EXPECT_GE(*std::ranges::min_element(variance), 0);
  EXPECT_GT(*std::ranges::max_element(variance), 1);
}
}  // namespace
}  // namespace warploom::verify
