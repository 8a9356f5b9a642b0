// Operators that look for places which are data, against plain loops.
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "base/random.h"
#include "builder.h"
#include "graph/graph.h"
#include "graph/reference.h"

namespace warploom::graph {
namespace {
using Ints = std::vector<int64_t>;

Ints below(Random& random, int64_t count, int64_t size) {  // some from the end
  Ints out(static_cast<size_t>(count));
  for (auto& place : out)
    place = static_cast<int64_t>(random.below(static_cast<uint64_t>(2 * size))) - size;
  return out;
}

std::vector<double> numbers(Random& random, int64_t count) {
  std::vector<double> out(static_cast<size_t>(count));
  for (double& value : out)
    value = random.normal();
  return out;
}

// The one output of a graph, decomposed, on these inputs.
std::vector<double> values_of(Builder& b, std::initializer_list<Bytes> inputs) {
  const auto graph = b.finish();
  EXPECT_TRUE(graph) << describe(graph.error());
  const auto primitive = graph ? decompose(*graph) : graph;
  const auto out =
      primitive ? evaluate(*primitive, std::vector<Bytes>(inputs)) : fail(primitive.error());
  EXPECT_TRUE(out) << describe(out.error());
  return out ? (*out)[0] : std::vector<double>();
}

int64_t counted(int64_t place, int64_t size) {
  return place < 0 ? place + size : place;
}

TEST(Lookups, GatherElementsTakesOneElementForEachIndex) {
  Random random(1);
  const auto x = numbers(random, 4 * 5 * 6);
  const Ints at = below(random, 4 * 3 * 2, 5);
  Builder b("t");
  b.output(b.add(OpKind::GatherElements,
                 {b.input("x", Dtype::f64, {4, 5, 6}), b.input("i", Dtype::i64, {4, 3, 2})},
                 {{"axis", int64_t{-2}}}));
  const auto y = values_of(b, {std::as_bytes(std::span(x)), std::as_bytes(std::span(at))});
  ASSERT_EQ(y.size(), at.size());
  for (int64_t i = 0; i < 4; ++i)
    for (int64_t j = 0; j < 3; ++j)
      for (int64_t k = 0; k < 2; ++k) {
        const int64_t flat = (i * 3 + j) * 2 + k;
        EXPECT_EQ(y[flat], x[(i * 5 + counted(at[flat], 5)) * 6 + k]) << flat;
      }
}

TEST(Lookups, GatherNdTakesLinesWithinEachBatch) {
  Random random(2);
  const auto x = numbers(random, 3 * 4 * 5 * 2);
  const Ints at = below(random, 3 * 7 * 2, 4);
  Builder b("t");
  b.output(b.add(OpKind::GatherND,
                 {b.input("x", Dtype::f64, {3, 4, 5, 2}), b.input("i", Dtype::i64, {3, 7, 2})},
                 {{"batch_dims", int64_t{1}}}));
  const auto y = values_of(b, {std::as_bytes(std::span(x)), std::as_bytes(std::span(at))});
  ASSERT_EQ(y.size(), 3u * 7 * 2);
  for (int64_t n = 0; n < 3; ++n)
    for (int64_t i = 0; i < 7; ++i)
      for (int64_t e = 0; e < 2; ++e) {
        const int64_t first = counted(at[(n * 7 + i) * 2], 4);
        const int64_t second = counted(at[(n * 7 + i) * 2 + 1], 5);
        EXPECT_EQ(y[(n * 7 + i) * 2 + e], x[((n * 4 + first) * 5 + second) * 2 + e])
            << n << " " << i;
      }
}

TEST(Lookups, ALossOfClassesLeavesOutTheIgnoredAndWeighsTheOthers) {
  Random random(3);
  const auto x = numbers(random, 6 * 4 * 3);
  const auto weights = numbers(random, 4);
  Ints classes(6 * 3);
  for (auto& one : classes)
    one = static_cast<int64_t>(random.below(4));
  Builder b("t");
  b.output(b.add(OpKind::SoftmaxCrossEntropyLoss,
                 {b.input("x", Dtype::f64, {6, 4, 3}), b.input("l", Dtype::i64, {6, 3}),
                  b.input("w", Dtype::f64, {4})},
                 {{"ignore_index", int64_t{2}}}));
  const auto y = values_of(b, {std::as_bytes(std::span(x)), std::as_bytes(std::span(classes)),
                               std::as_bytes(std::span(weights))});
  double sum = 0;
  double share = 0;
  for (int64_t n = 0; n < 6; ++n)
    for (int64_t d = 0; d < 3; ++d) {
      const int64_t label = classes[n * 3 + d];
      if (label == 2) continue;
      double powers = 0;
      for (int64_t c = 0; c < 4; ++c)
        powers += std::exp(x[(n * 4 + c) * 3 + d]);
      sum += weights[label] * (std::log(powers) - x[(n * 4 + label) * 3 + d]);
      share += weights[label];
    }
  ASSERT_EQ(y.size(), 1u);
  EXPECT_NEAR(y[0], sum / share, 1e-12 * std::abs(sum / share));
}

TEST(Lookups, LinesBetweenPlacesAreWeighted) {
  const std::vector<double> x = {1, 3, 9, 2};
  const std::vector<double> scales = {2.5};
  Builder b("t");
  const TensorId in = b.input("x", Dtype::f64, {4});
  const TensorId by = b.constant("s", Dtype::f32, {1}, scales);
  b.output(b.add(OpKind::Resize, {in, kAbsent, by}, {{"mode", std::string("linear")}}));
  const auto y = values_of(b, {std::as_bytes(std::span(x))});
  ASSERT_EQ(y.size(), 10u);
  for (size_t i = 0; i < y.size(); ++i) {
    const double at = std::clamp((static_cast<double>(i) + 0.5) / 2.5 - 0.5, 0.0, 3.0);
    const double low = std::floor(at);
    const double next = x[static_cast<size_t>(std::min(low + 1, 3.0))];
    EXPECT_NEAR(y[i], x[static_cast<size_t>(low)] * (1 - (at - low)) + next * (at - low), 1e-6)
        << i;
  }
}

TEST(Lookups, IntegersHaveNothingBetweenThem) {
  Builder b("t");
  const TensorId in = b.input("x", Dtype::i32, {4});
  const TensorId by = b.constant("s", Dtype::f32, {1}, std::vector<double>{2});
  b.output(b.add(OpKind::Resize, {in, kAbsent, by}, {{"mode", std::string("linear")}}));
  const auto graph = b.finish();
  ASSERT_FALSE(graph);
  EXPECT_EQ(graph.error().code, ErrorCode::kOnnxType);
}

TEST(Lookups, PadsThatRepeatGoAroundAsOftenAsTheyMust) {
  const std::vector<double> x = {1, 2, 3};
  const auto padded = [&](const std::string& mode) {
    Builder b("t");
    b.output(b.add(OpKind::Pad, {b.input("x", Dtype::f64, {3}), b.integers("p", Ints{5, -1})},
                   {{"mode", mode}}));
    return values_of(b, {std::as_bytes(std::span(x))});
  };
  EXPECT_EQ(padded("reflect"), (std::vector<double>{2, 1, 2, 3, 2, 1, 2}));
  EXPECT_EQ(padded("edge"), (std::vector<double>{1, 1, 1, 1, 1, 1, 2}));
  EXPECT_EQ(padded("wrap"), (std::vector<double>{2, 3, 1, 2, 3, 1, 2}));
}
}  // namespace
}  // namespace warploom::graph
