#include <gtest/gtest.h>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "fake_kernels.h"
#include "graph/builder.h"
#include "graph/graph.h"
#include "graph/reference.h"
#include "graph/track.h"
#include "verify/coverage.h"
#include "verify/inputs.h"
#include "verify/tolerance.h"

namespace warploom::verify {
namespace {
using fake::matmul_graph;

// One random matmul with its FP64 truth, and an fp32 evaluation whose operands are first passed
// through `round`.
struct Case {
  fake::Sizes sizes{8, 40, 512};
  graph::Graph graph = matmul_graph(sizes);
  std::vector<float> x;
  std::vector<float> w;
  std::vector<float> found;
  graph::ValueAndMagnitude truth;

  explicit Case(InputFamily family) : x(8 * 512), w(512 * 40), found(8 * 40) {
    fill(streams_of(graph, family, 5)[0], x.data(), 0, static_cast<int64_t>(x.size()));
    fill(streams_of(graph, family, 5)[1], w.data(), 0, static_cast<int64_t>(w.size()));
    const std::array inputs = {std::as_bytes(std::span(x)), std::as_bytes(std::span(w))};
    graph::EvalOptions options;
    options.marks = is_wide(family);
    auto made = graph::evaluate_magnitude_rows(graph, inputs, 0, 0, 8, options);
    EXPECT_TRUE(made);
    truth = std::move(*made);
  }

  template <class Round> void evaluate(Round round) {
    for (int64_t i = 0; i < sizes.m; ++i)
      for (int64_t j = 0; j < sizes.n; ++j) {
        float sum = 0;
        for (int64_t l = 0; l < sizes.k; ++l)
          sum += round(x[static_cast<size_t>(i * sizes.k + l)]) *
                 round(w[static_cast<size_t>(l * sizes.n + j)]);
        found[static_cast<size_t>(i * sizes.n + j)] = sum;
      }
  }

  Status judged(Track track, double vendor_error = -1) {
    Comparison seen;
    const Tolerance tolerance = tolerance_of(graph, track, 0);
    compare(seen, tolerance, Dtype::f32, found.data(), truth.value.data(), truth.magnitude.data(),
            0, 8 * 40, truth.marked);
    return accept(seen, tolerance, vendor_error, "test");
  }
};

float same(float v) {
  return v;
}

float to_tf32(float v) {
  return static_cast<float>(rounded(Dtype::tf32, static_cast<double>(v)));
}

float cut_to_tf32(float v) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(v) & 0xffffe000u);
}

float to_bf16(float v) {
  uint16_t stored = 0;
  store_from_double(Dtype::bf16, &stored, 0, static_cast<double>(v));
  return static_cast<float>(load_as_double(Dtype::bf16, &stored, 0));
}

TEST(Tolerance, PlainFp32PassesTheFp32TrackOnEveryFamily) {
  for (const InputFamily family : coverage_of(matmul_graph({8, 40, 512})).families) {
    Case c(family);
    c.evaluate(same);
    const Status status = c.judged(Track::fp32);
    EXPECT_TRUE(status) << name_of(family) << ": " << (status ? "" : status.error().found);
  }
}

TEST(Tolerance, RoundedOperandsFailTheFp32Track) {
  Case c(InputFamily::normal);
  c.evaluate(to_tf32);
  const Status status = c.judged(Track::fp32);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kCandidateWrong);
}

TEST(Tolerance, Tf32OperandsPassTheTf32TrackRoundedOrCut) {
  for (const InputFamily family : coverage_of(matmul_graph({8, 40, 512})).families) {
    Case c(family);
    c.evaluate(to_tf32);
    EXPECT_TRUE(c.judged(Track::tf32)) << name_of(family);
    c.evaluate(cut_to_tf32);
    EXPECT_TRUE(c.judged(Track::tf32)) << name_of(family);
  }
}

TEST(Tolerance, Bf16OperandsFailTheTf32TrackAndPassTheBf16Track) {
  Case c(InputFamily::normal);
  c.evaluate(to_bf16);
  EXPECT_FALSE(c.judged(Track::tf32));
  EXPECT_TRUE(c.judged(Track::bf16));
}

TEST(Tolerance, AVendorAsInexactRaisesTheFrobeniusBoundOnly) {
  Case c(InputFamily::normal);
  c.evaluate(same);
  c.found[17] *= 1.001f;
  EXPECT_FALSE(c.judged(Track::fp32, 1.0));  // the element's own bound still holds
}

TEST(Tolerance, OneMissingTermIsSeen) {
  Case c(InputFamily::normal);
  c.evaluate(same);
  c.found[5] -= c.x[511] * c.w[511 * 40 + 5];
  EXPECT_FALSE(c.judged(Track::fp32));
}

TEST(Tolerance, PoisonIsUnwrittenAndNanIsNonFinite) {
  Case c(InputFamily::normal);
  c.evaluate(same);
  c.found[40] = std::bit_cast<float>(kPoison);
  EXPECT_EQ(c.judged(Track::fp32).error().code, ErrorCode::kCandidateUnwritten);
  c.found[40] = std::nanf("");
  EXPECT_EQ(c.judged(Track::fp32).error().code, ErrorCode::kCandidateNonFinite);
  c.found[40] = HUGE_VALF;
  EXPECT_EQ(c.judged(Track::fp32).error().code, ErrorCode::kCandidateNonFinite);
}

// Of one element: what is allowed where FP64 has a value, of a magnitude.
Status of_one(float found, double value, double magnitude, bool marked = false) {
  Comparison seen;
  compare(seen, {1e-6, 1e-6, 1e-6, 0}, Dtype::f32, &found, &value, &magnitude, 0, 1, marked);
  return accept(seen, {HUGE_VAL, 1e-6, 1e-6, 0}, -1, "test");
}

TEST(Tolerance, BeyondTheTypesLargestNumberInfinityIsRight) {
  EXPECT_TRUE(of_one(HUGE_VALF, 1e39, 1e39));
  EXPECT_TRUE(of_one(-HUGE_VALF, -1e39, 1e39));
  EXPECT_FALSE(of_one(-HUGE_VALF, 1e39, 1e39));
  EXPECT_FALSE(of_one(1, 1e39, 1e39));
  EXPECT_EQ(of_one(HUGE_VALF, 1e38, 1e38).error().code, ErrorCode::kCandidateNonFinite);
}

TEST(Tolerance, ANumberForNanIsWrong) {
  EXPECT_TRUE(of_one(std::nanf(""), NAN, NAN));
  EXPECT_EQ(of_one(7, NAN, NAN).error().code, ErrorCode::kCandidateWrong);
}

TEST(Tolerance, WhatComesOfANumberThatOverflowedMustOnlyBeWritten) {
  EXPECT_TRUE(of_one(HUGE_VALF, 3, NAN, true));
  EXPECT_TRUE(of_one(std::nanf(""), 3, NAN, true));
  EXPECT_FALSE(of_one(HUGE_VALF, 3, NAN));
  EXPECT_EQ(of_one(std::bit_cast<float>(kPoison), 3, NAN, true).error().code,
            ErrorCode::kCandidateUnwritten);
}

TEST(Tolerance, ZerosAreWrong) {
  Case c(InputFamily::normal);
  EXPECT_EQ(c.judged(Track::tolerance).error().code, ErrorCode::kCandidateWrong);
}

TEST(Tolerance, OverflowOfANarrowOutputIsNotHeldAgainstIt) {
  const std::array<double, 2> value = {70000, 1};
  const std::array<double, 2> magnitude = {70000, 1};
  std::array<uint16_t, 2> found{};
  store_from_double(Dtype::f16, found.data(), 0, HUGE_VAL);
  store_from_double(Dtype::f16, found.data(), 1, 1);
  Comparison seen;
  const Tolerance tolerance{1e-3, 1e-3, 1e-3, 0, false};
  compare(seen, tolerance, Dtype::f16, found.data(), value.data(), magnitude.data(), 0, 2);
  EXPECT_TRUE(accept(seen, tolerance, -1, "test"));
}

TEST(Tolerance, ManyBlocksAddUpToTheWhole) {
  Case c(InputFamily::uniform);
  c.evaluate(to_tf32);
  const Tolerance tolerance = tolerance_of(c.graph, Track::fp32, 0);
  Comparison whole;
  Comparison parts;
  compare(whole, tolerance, Dtype::f32, c.found.data(), c.truth.value.data(),
          c.truth.magnitude.data(), 0, 320);
  for (int64_t from = 0; from < 320; from += 40)
    compare(parts, tolerance, Dtype::f32, c.found.data() + from, c.truth.value.data() + from,
            c.truth.magnitude.data() + from, from, 40);
  EXPECT_DOUBLE_EQ(whole.frobenius(), parts.frobenius());
  EXPECT_EQ(whole.worst.index, parts.worst.index);
}

// Where one outlier meets another, one element is nearly all of the norm, and its rounding errors
// are not averaged out.
TEST(Tolerance, ANormThatOneElementDominatesMayBeOffByMore) {
  const Tolerance tolerance = tolerance_of(matmul_graph(), Track::fp32, 0);
  for (const bool dominated : {true, false}) {
    std::vector<double> truth(4096, 1);
    if (dominated) truth[7] = 1e6;
    std::vector<float> found(truth.size());
    for (size_t i = 0; i < truth.size(); ++i)
      found[i] = static_cast<float>(truth[i] * (1 + 10 * 0x1p-24));
    Comparison seen;
    compare(seen, tolerance, Dtype::f32, found.data(), truth.data(), truth.data(), 0, 4096);
    EXPECT_EQ(accept(seen, tolerance, -1, "test").has_value(), dominated);
  }
}

TEST(Tolerance, WhatATypeCannotHoldIsInfinityOrItsLargestAndNoOtherNumber) {
  const fake::Sizes sizes{1, 64, 8};
  const Tolerance tolerance = tolerance_of(matmul_graph(sizes), Track::fp32, 0);
  for (const auto& [overflown, right] :
       {std::pair(HUGE_VALF, true), {3.4e38f, true}, {-HUGE_VALF, false}, {5.0f, false}}) {
    std::vector<double> truth(64, 1e30);
    std::vector<float> found(64, 1e30f);
    truth[7] = 1e39;
    found[7] = overflown;
    Comparison seen;
    compare(seen, tolerance, Dtype::f32, found.data(), truth.data(), truth.data(), 0, 64);
    EXPECT_EQ(accept(seen, tolerance, 1e9, "test").has_value(), right) << overflown;
  }
}

// x·sigmoid(x) at -88: the sigmoid is too small for fp32 and may be flushed to 0, the product would
// not be.
TEST(Tolerance, WhatWasFlushedOnTheWayMayBeScaled) {
  const Tolerance tolerance = tolerance_of(matmul_graph({1, 64, 8}), Track::fp32, 0);
  for (const auto& [lost, right] : {std::pair(-2.5e-37, true), {-1e-33, false}}) {
    std::vector<double> truth(64, 1);
    std::vector<float> found(64, 1);
    truth[7] = lost;
    found[7] = -0.0f;
    Comparison seen;
    compare(seen, tolerance, Dtype::f32, found.data(), truth.data(), truth.data(), 0, 64);
    EXPECT_EQ(accept(seen, tolerance, -1, "test").has_value(), right) << lost;
  }
}

TEST(Tolerance, AnInfiniteConditionAllowsNoOtherNumber) {
  const Tolerance tolerance = tolerance_of(matmul_graph({1, 64, 8}), Track::fp32, 0);
  std::vector<double> truth(64, 1);
  std::vector<double> magnitude(64, 1);
  std::vector<float> found(64, 1);
  magnitude[7] = HUGE_VAL;
  magnitude[9] = std::nan("");
  for (const auto& [element, value, right] :
       {std::tuple(7, 1.0f, true), {7, 3.0f, false}, {9, 3.0f, false}}) {
    std::vector<float> one = found;
    one[element] = value;
    Comparison seen;
    compare(seen, tolerance, Dtype::f32, one.data(), truth.data(), magnitude.data(), 0, 64);
    EXPECT_EQ(accept(seen, tolerance, -1, "test").has_value(), right) << element;
  }
}

// What lies beyond a type's numbers in some rows may do so in others, whose sums are infinite then.
TEST(Tolerance, OverflowThatWasSeenMayBeElsewhere) {
  Comparison seen;
  const std::vector<double> truth = {1, 1e39};
  const std::vector<float> found = {1, HUGE_VALF};
  compare(seen, tolerance_of(matmul_graph({1, 64, 8}), Track::fp32, 0), Dtype::f32, found.data(),
          truth.data(), truth.data(), 0, 1);
  EXPECT_FALSE(may_overflow(seen, Dtype::f32));
  compare(seen, {}, Dtype::f32, &found[1], &truth[1], &truth[1], 1, 1);
  EXPECT_TRUE(may_overflow(seen, Dtype::f32));
}

TEST(Tolerance, ZerosAreRightWhereTheTypeHoldsNothingElse) {
  graph::Graph graph = matmul_graph({8, 8, 4});
  for (graph::Tensor& tensor : graph.tensors)
    tensor.dtype = Dtype::f16;
  const Tolerance tolerance = tolerance_of(graph, Track::fp16, 0);
  const std::vector<uint16_t> zeros(64);
  for (const auto& [size, right] : {std::pair(1e-9, true), {1e-3, false}}) {
    const std::vector<double> truth(64, size);
    Comparison seen;
    compare(seen, tolerance, Dtype::f16, zeros.data(), truth.data(), truth.data(), 0, 64);
    EXPECT_EQ(accept(seen, tolerance, -1, "test").has_value(), right) << size;
    EXPECT_EQ(seen.frobenius(), right ? 0 : 1) << size;
  }
}

// fp16 holds multiples of 2^-24 below 2^-14: results around 1e-6 keep three or four bits however
// exactly they are computed.
TEST(Tolerance, ResultsTooSmallForTheirTypeMayBeRounded) {
  graph::Builder builder("mm");
  const auto x = builder.input("x", Dtype::f16, {1, 8});
  const auto w = builder.input("w", Dtype::f16, {8, 64});
  builder.output(builder.add(graph::OpKind::MatMul, {x, w}));
  const auto graph = builder.finish();
  ASSERT_TRUE(graph);
  const Tolerance tolerance = tolerance_of(*graph, Track::fp16, 0);
  std::vector<double> truth(64);
  std::vector<uint16_t> rounded_to_step(64);
  std::vector<uint16_t> two_steps_off(64);
  for (size_t i = 0; i < truth.size(); ++i) {
    truth[i] = 1e-6 + 3.1e-8 * static_cast<double>(i);
    store_from_double(Dtype::f16, rounded_to_step.data(), i, truth[i]);
    store_from_double(Dtype::f16, two_steps_off.data(), i, truth[i] + 0x1p-23);
  }
  for (const auto& [found, right] : {std::pair(rounded_to_step, true), {two_steps_off, false}}) {
    Comparison seen;
    compare(seen, tolerance, Dtype::f16, found.data(), truth.data(), truth.data(), 0, 64);
    EXPECT_EQ(accept(seen, tolerance, -1, "test").has_value(), right);
  }
}
}  // namespace
}  // namespace warploom::verify
