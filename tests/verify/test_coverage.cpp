// Which families hold for a graph, what they draw, and how special values are compared.
#include <gtest/gtest.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <vector>
#include "../graph/builder.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/rows.h"
#include "codegen/launch_list.h"
#include "graph/builder.h"
#include "graph/graph.h"
#include "graph/reference.h"
#include "graph/track.h"
#include "verify/coverage.h"
#include "verify/inputs.h"
#include "verify/rare_errors.h"
#include "verify/tolerance.h"

namespace warploom::verify {
namespace {
using graph::Builder;
using graph::Graph;
using graph::OpKind;

Graph of_two(OpKind op, Dtype dtype = Dtype::f32, const graph::Shape& x = {24, 32},
             const graph::Shape& w = {32, 24}) {
  Builder b("two");
  b.output(b.add(op, {b.input("x", dtype, x), b.input("w", dtype, w)}));
  return *b.finish();
}

Graph of_one(OpKind op, Dtype dtype = Dtype::f32) {
  Builder b("one");
  b.output(b.add(op, {b.input("x", dtype, {24, 32})}));
  return *b.finish();
}

bool holds(const Graph& graph, InputFamily family, Track track = Track::fp32,
           SpecialValues special = SpecialValues::exact) {
  return contains(coverage_of(graph, track, special).families, family);
}

std::vector<float> drawn(const Graph& graph, InputFamily family, size_t input = 0,
                         uint64_t seed = 3) {
  std::vector<float> list(graph::element_count(graph.tensor(graph.inputs[input]).shape));
  fill(streams_of(graph, family, seed)[input], list.data(), 0, std::ssize(list));
  return list;
}

int64_t without_number(const std::vector<float>& list) {
  return std::ranges::count_if(list, [](float x) { return !std::isfinite(x); });
}

TEST(Coverage, SpecialValuesHoldForWhatMixesElements) {
  for (const OpKind op : {OpKind::Softmax, OpKind::ReduceMax, OpKind::ReduceSum}) {
    EXPECT_TRUE(holds(of_one(op), InputFamily::infinities)) << static_cast<int>(op);
    EXPECT_TRUE(holds(of_one(op), InputFamily::nans)) << static_cast<int>(op);
    EXPECT_TRUE(holds(of_one(op), InputFamily::magnitudes)) << static_cast<int>(op);
  }
  EXPECT_TRUE(holds(of_two(OpKind::MatMul), InputFamily::infinities));
  EXPECT_TRUE(holds(of_two(OpKind::MatMul), InputFamily::magnitudes));
  EXPECT_TRUE(coverage_of(of_two(OpKind::MatMul)).not_promised.empty());
}

TEST(Coverage, AFiniteKernelIsJudgedOnFiniteInputsAndTheVerdictSaysSo) {
  const Coverage finite = coverage_of(of_two(OpKind::MatMul), Track::fp32, SpecialValues::finite);
  for (const InputFamily family :
       {InputFamily::infinities, InputFamily::nans, InputFamily::magnitudes, InputFamily::ends})
    EXPECT_FALSE(contains(finite.families, family)) << name_of(family);
  EXPECT_TRUE(contains(finite.families, InputFamily::outliers));
  ASSERT_EQ(finite.not_promised.size(), 1u);
  EXPECT_NE(finite.not_promised[0].find("must be finite"), std::string::npos);
}

TEST(Coverage, ATrackOfFewerExponentsHasNoMagnitudesFarApart) {
  EXPECT_FALSE(holds(of_two(OpKind::MatMul), InputFamily::magnitudes, Track::fp16));
  EXPECT_TRUE(holds(of_two(OpKind::MatMul), InputFamily::magnitudes, Track::bf16));
}

TEST(Coverage, FiniteKernelsAreJudgedOnLargeNumbersToo) {
  EXPECT_TRUE(
      holds(of_two(OpKind::MatMul), InputFamily::large, Track::fp32, SpecialValues::finite));
  EXPECT_TRUE(holds(of_one(OpKind::Relu), InputFamily::large, Track::fp32, SpecialValues::finite));
  EXPECT_FALSE(holds(of_two(OpKind::MatMul), InputFamily::large, Track::fp16));
  EXPECT_FALSE(holds(of_one(OpKind::LogSoftmax), InputFamily::large));
}

TEST(Coverage, RowsOfOneNumberHoldForWhatMixesElements) {
  for (const OpKind op : {OpKind::Softmax, OpKind::ReduceMax, OpKind::ReduceSum})
    EXPECT_TRUE(holds(of_one(op), InputFamily::level_rows)) << static_cast<int>(op);
  EXPECT_FALSE(holds(of_one(OpKind::Relu), InputFamily::level_rows));
}

// x less its mean, by what that varies.
Graph of_variance(bool with_epsilon) {
  Builder b("variance");
  const auto x = b.input("x", Dtype::f32, {24, 32});
  const std::map<std::string, graph::Attribute> last = {{"axes", std::vector<int64_t>{1}},
                                                        {"keepdims", int64_t{1}}};
  const auto less = b.add(OpKind::Sub, {x, b.add(OpKind::ReduceMean, {x}, last)});
  auto varies = b.add(OpKind::ReduceMean, {b.add(OpKind::Mul, {less, less})}, last);
  const auto epsilon = b.constant("epsilon", Dtype::f32, {}, std::array{1e-5});
  if (with_epsilon) varies = b.add(OpKind::Add, {varies, epsilon});
  b.output(b.add(OpKind::Div, {less, b.add(OpKind::Sqrt, {varies})}));
  return *b.finish();
}

TEST(Coverage, WhatVanishesInARowOfOneNumberIsNoDivisor) {
  EXPECT_TRUE(holds(of_variance(true), InputFamily::level_rows));
  EXPECT_FALSE(holds(of_variance(false), InputFamily::level_rows));
}

TEST(Coverage, OrderedRowsAscendDescendAndHaveOneNumberAmongZeros) {
  constexpr size_t kRow = 32;
  int ascending = 0;
  int descending = 0;
  int peaks = 0;
  int alike = 0;
  for (uint64_t seed = 1; seed < 20; ++seed) {
    const auto list = drawn(of_one(OpKind::Softmax), InputFamily::ordered_rows, 0, seed);
    for (size_t row = 0; row < 24; ++row) {
      const std::span<const float> one(list.data() + row * kRow, kRow);
      const auto rises = std::ranges::is_sorted(one) && one[0] < one[kRow - 1];
      const auto falls = std::ranges::is_sorted(one, std::greater()) && one[0] > one[kRow - 1];
      ascending += rises;
      descending += falls;
      peaks += std::ranges::count(one, 0.0f) == std::ssize(one) - 1;
      const std::span<const float> next(list.data() + (row | 1) * kRow, kRow);
      alike += row % 2 == 0 && rises && std::ranges::equal(one, next);
    }
  }
  EXPECT_GT(ascending, 19 * 24 / 12);
  EXPECT_GT(descending, 19 * 24 / 12);
  EXPECT_GT(peaks, 19 * 24 / 12);
  EXPECT_GT(alike, 19);
}

TEST(Coverage, EveryOtherRowIsOneNumberAgainAndAgain) {
  int level = 0;
  bool zeros = false;
  constexpr size_t kRow = 32;
  for (uint64_t seed = 1; seed < 20; ++seed) {
    const auto list = drawn(of_one(OpKind::Softmax), InputFamily::level_rows, 0, seed);
    for (size_t row = 0; row < 24; ++row) {
      const std::span<const float> one(list.data() + row * kRow, kRow);
      const bool is_level = std::ranges::count(one, one[0]) == std::ssize(one);
      level += is_level;
      zeros |= is_level && one[0] == 0;
      EXPECT_LT(std::fabs(one[0]), 4.1f);
    }
  }
  EXPECT_GT(level, 19 * 24 / 3);
  EXPECT_LT(level, 19 * 24 * 2 / 3);
  EXPECT_TRUE(zeros);
}

TEST(Coverage, LargeNumbersAreOfBothSignsAndLarge) {
  const auto list = drawn(of_one(OpKind::Relu), InputFamily::large);
  EXPECT_GT(*std::ranges::max_element(list), 3000);
  EXPECT_LT(*std::ranges::min_element(list), -3000);
  EXPECT_LT(*std::ranges::max_element(list), 3460);
}

TEST(Coverage, StepsBehindRoundingHaveNoTies) {
  EXPECT_TRUE(holds(of_one(OpKind::Round), InputFamily::ties));
  Builder b("step");
  const auto tenth = b.constant("tenth", Dtype::f32, {}, std::array{0.1});
  b.output(b.add(OpKind::Round, {b.add(OpKind::Mul, {b.input("x", Dtype::f32, {64}), tenth})}));
  EXPECT_FALSE(holds(*b.finish(), InputFamily::ties));
}

TEST(Coverage, WhatIsMultipliedWithASoftmaxCarriesNoInfinities) {
  Builder b("attention");
  const auto scores = b.add(
      OpKind::MatMul, {b.input("q", Dtype::f32, {9, 16}), b.input("k", Dtype::f32, {16, 21})});
  b.output(
      b.add(OpKind::MatMul, {b.add(OpKind::Softmax, {scores}), b.input("v", Dtype::f32, {21, 8})}));
  EXPECT_EQ(carriers_of(*b.finish(), {}).inputs, (std::vector<size_t>{0, 1}));
}

TEST(Coverage, WeightsOfPaddedWindowsCarryNoInfinities) {
  const auto carriers = [](int64_t pad) {
    Builder b("conv");
    b.output(b.add(OpKind::Conv,
                   {b.input("x", Dtype::f32, {1, 3, 8, 8}), b.input("w", Dtype::f32, {4, 3, 3, 3})},
                   {{"pads", std::vector<int64_t>{pad, pad, pad, pad}}}));
    return carriers_of(*b.finish(), {}).inputs;
  };
  EXPECT_EQ(carriers(1), (std::vector<size_t>{0}));
  EXPECT_EQ(carriers(0), (std::vector<size_t>{0, 1}));
}

TEST(Coverage, InputsHaveAFewSpecialValuesAndMostRowsHaveNone) {
  const Graph graph = of_two(OpKind::MatMul);
  for (const InputFamily family : {InputFamily::infinities, InputFamily::nans}) {
    for (uint64_t seed = 1; seed < 20; ++seed) {
      const int64_t first = without_number(drawn(graph, family, 0, seed));
      const int64_t second = without_number(drawn(graph, family, 1, seed));
      EXPECT_TRUE(first > 0 && second > 0) << first << " " << second;
      EXPECT_LT(first, 32);
      EXPECT_LT(second, 32);
    }
  }
}

TEST(Coverage, ATensorOfThreeElementsHasASpecialValueAndAnOutlier) {
  Builder b("small");
  b.output(b.add(OpKind::Softmax, {b.input("x", Dtype::f32, {1, 3})}));
  const Graph graph = *b.finish();
  for (uint64_t seed = 1; seed < 20; ++seed) {
    EXPECT_GE(without_number(drawn(graph, InputFamily::nans, 0, seed)), 1);
    EXPECT_GE(without_number(drawn(graph, InputFamily::infinities, 0, seed)), 1);
    const auto outliers = drawn(graph, InputFamily::outliers, 0, seed);
    EXPECT_TRUE(std::ranges::any_of(outliers, [](float x) { return std::abs(x) >= 999; }));
  }
}

template <class T> std::vector<T> whole(Dtype dtype, bool without_least = false) {
  std::vector<T> list(4096);
  Stream stream{3, 0, InputFamily::whole_range, dtype};
  stream.without_least = without_least;
  fill(stream, list.data(), 0, std::ssize(list));
  return list;
}

template <class T> void expect_whole(Dtype dtype) {
  const auto list = whole<T>(dtype);
  using Limits = std::numeric_limits<T>;
  for (const T wanted : {Limits::min(), Limits::max(), T(0), T(1), T(-1), T(64)})
    EXPECT_TRUE(contains(list, wanted)) << name_of(dtype) << " " << +wanted;
}

TEST(Coverage, IntegersComeFromAllOfTheirType) {
  expect_whole<int32_t>(Dtype::i32);
  expect_whole<int64_t>(Dtype::i64);
  expect_whole<int8_t>(Dtype::i8);
  expect_whole<uint8_t>(Dtype::u8);
  EXPECT_FALSE(contains(whole<int32_t>(Dtype::i32, true), std::numeric_limits<int32_t>::min()));
}

TEST(Coverage, QuotientsOfIntegersLeaveTheLeastOut) {
  const Graph graph = of_two(OpKind::Div, Dtype::i32, {24, 32}, {24, 32});
  EXPECT_TRUE(avoids_least(graph));
  EXPECT_TRUE(holds(graph, InputFamily::whole_range));
  EXPECT_FALSE(avoids_least(of_two(OpKind::Add, Dtype::i32, {4}, {4})));
}

TEST(Coverage, ComputedDivisorsHaveNoWholeRange) {
  Builder b("computed");
  const auto x = b.input("x", Dtype::i32, {64});
  b.output(b.add(OpKind::Div, {x, b.add(OpKind::Add, {x, b.input("z", Dtype::i32, {64})})}));
  const Coverage all = coverage_of(*b.finish());
  EXPECT_FALSE(contains(all.families, InputFamily::whole_range));
  EXPECT_EQ(all.not_promised.size(), 1u);
}

TEST(Coverage, TiesAreMultiplesOfAHalf) {
  const auto list = drawn(of_one(OpKind::ReduceMax), InputFamily::ties);
  for (const float x : list)
    EXPECT_EQ(2 * x, std::round(2 * x));
  EXPECT_TRUE(contains(list, 0.5f));
  EXPECT_TRUE(contains(list, 0.0f));
}

TEST(Coverage, MagnitudesGoFarBeyondThoseOfHalves) {
  const auto list = drawn(of_one(OpKind::ReduceSum), InputFamily::magnitudes);
  EXPECT_TRUE(std::ranges::any_of(list, [](float x) { return std::abs(x) > 1e10f; }));
  EXPECT_TRUE(std::ranges::any_of(list, [](float x) { return std::abs(x) < 1e-10f; }));
  EXPECT_EQ(without_number(list), 0);
}

// What is found of a value, as fp32.
Status judged(double value, float found, double magnitude = 1, bool marked = false) {
  Comparison seen;
  const Tolerance tolerance = tolerance_of(of_one(OpKind::ReduceSum), Track::fp32, 0);
  compare(seen, tolerance, Dtype::f32, &found, &value, &magnitude, 0, 1, marked);
  return accept(seen, tolerance, -1, "test");
}

TEST(SpecialValues, AreComparedByKindAndSign) {
  constexpr float kMost = std::numeric_limits<float>::max();
  EXPECT_TRUE(judged(HUGE_VAL, HUGE_VALF));
  EXPECT_TRUE(judged(NAN, NAN));
  for (const float wrong : {kMost, -HUGE_VALF, 0.0f})
    EXPECT_FALSE(judged(HUGE_VAL, wrong));
  EXPECT_FALSE(judged(HUGE_VAL, NAN));
  EXPECT_FALSE(judged(NAN, HUGE_VALF));
  EXPECT_FALSE(judged(1, HUGE_VALF));
  EXPECT_TRUE(judged(1e39, HUGE_VALF));
}

TEST(SpecialValues, ALostInfinityIsWrong) {
  const Status status = judged(-HUGE_VAL, -3e38f);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kCandidateWrong);
}

TEST(SpecialValues, WhatOverflowsOnTheWayMayBeAnythingThatIsWritten) {
  EXPECT_TRUE(judged(1, HUGE_VALF, NAN, true));
  float poison = 0;
  std::memcpy(&poison, &kPoison, 4);
  const Status status = judged(1, poison, NAN, true);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kCandidateUnwritten);
}

TEST(SpecialValues, IntegersOf64BitsAreComparedToTheLastDigit) {
  const int64_t value = (int64_t{1} << 53) + 1;
  const auto judged_as = [&](int64_t found) {
    Comparison seen;
    compare_integers(seen, Dtype::i64, &found, &value, 0, 1);
    return accept(seen, {.frobenius = HUGE_VAL, .absolute = 0.5}, -1, "test").has_value();
  };
  EXPECT_TRUE(judged_as(value));
  EXPECT_FALSE(judged_as(value - 1));
}

// A sum whose terms are more than fp32 holds, beside one that has none such.
TEST(SpecialValues, OverflowIsMarkedElementByElementWhereItIsAskedFor) {
  const Graph graph = of_two(OpKind::MatMul, Dtype::f32, {2, 2}, {2, 1});
  const std::vector<float> x = {1e30f, 1, 2, 3};
  const std::vector<float> w = {1e20f, 1};
  const std::array inputs = {std::as_bytes(std::span(x)), std::as_bytes(std::span(w))};
  graph::EvalOptions options(1);
  options.marks = true;
  const auto truth = graph::evaluate_magnitude_rows(graph, inputs, 0, 0, 2, options);
  ASSERT_TRUE(truth);
  EXPECT_TRUE(truth->marked);
  EXPECT_TRUE(std::isnan(truth->magnitude[0]));
  EXPECT_TRUE(std::isfinite(truth->magnitude[1]));
}

TEST(SpecialValues, AMaximumKeepsNanOrDropsItAsIsAskedFor) {
  const Graph graph = of_one(OpKind::ReduceMax);
  std::vector<float> x(24 * 32, 1);
  x[5] = NAN;
  x[6] = 2;
  const std::array inputs = {std::as_bytes(std::span(x))};
  graph::EvalOptions options(1);
  const auto kept = graph::evaluate(graph, inputs, options);
  options.drops_nan = true;
  const auto dropped = graph::evaluate(graph, inputs, options);
  ASSERT_TRUE(kept && dropped);
  EXPECT_TRUE(std::isnan((*kept)[0][0]));
  EXPECT_EQ((*dropped)[0][0], 2);
}

TEST(RareErrors, ExcludeAboutFourPointSixByTheCalls) {
  EXPECT_EQ(excluded_rate(0), 1);
  EXPECT_NEAR(excluded_rate(1), 0.99, 1e-12);
  EXPECT_NEAR(excluded_rate(919), 1.0 / 200, 1e-5);
  EXPECT_LE(excluded_rate(919), 1.0 / 200);
  EXPECT_GT(excluded_rate(918), 1.0 / 200);
  EXPECT_NEAR(excluded_rate(100'000) * 100'000, 4.605, 0.001);
}

TEST(RareErrors, AreToldInPlainWords) {
  EXPECT_EQ(text_of_excluded(200, 200),
            "a wrong call in more than 1 of 43 is excluded with 99 % confidence (200 whole calls)");
  EXPECT_EQ(text_of_excluded(200, 13),
            "a wrong call in more than 1 of 43 is excluded with 99 % confidence (200 whole calls); "
            "one that depends on its inputs, in more than 1 of 3 (13 inputs)");
  EXPECT_EQ(text_of_excluded(0, 0),
            "no call was looked at whole: no rate of wrong calls is excluded");
}

TEST(RareErrors, ForeignKernelsGetAsManyCallsAsTheirTimeAllows) {
  EXPECT_EQ(whole_calls_for(true, 0.02), 919);
  EXPECT_EQ(whole_calls_for(true, 50), 40);
  EXPECT_EQ(whole_calls_for(false, 0.02), 0);
}
}  // namespace
}  // namespace warploom::verify
