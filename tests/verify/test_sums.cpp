// Sums of outputs with random signs: honest rounding passes, one wrong element in its line does
// not.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "base/random.h"
#include "graph/projection.h"
#include "verify/inputs.h"
#include "verify/tolerance.h"

namespace warploom::verify {
namespace {
struct Sample {
  Sample(Dtype of, int64_t before, int64_t extent, int64_t after, double scale = 1) : dtype(of) {
    Random random(5, "sample");
    by.before = before;
    by.extent = extent;
    by.after = after;
    for (int64_t k = 0; k < extent; ++k)
      by.signs.push_back(random.below(2) == 0 ? -1 : 1);
    truth.resize(static_cast<size_t>(before * after));
    found.resize(static_cast<size_t>(bytes_of(of, before * extent * after)));
    for (int64_t i = 0; i < before * extent * after; ++i) {
      const double value =
          is_float(of) ? scale * random.normal() : static_cast<double>(random.below(1000)) - 500;
      truth[i / (extent * after) * after + i % after] += by.signs[i / after % extent] * value;
      set(i, value);
    }
  }

  void set(int64_t i, double value) {
    store_from_double(dtype, found.data(), static_cast<size_t>(i), value);
  }

  double get(int64_t i) const {
    return load_as_double(dtype, found.data(), static_cast<size_t>(i));
  }

  Status judged(double allowed, int64_t slabs_a_time = 3, double shown = 1,
                InputFamily family = InputFamily::normal) const {
    std::vector<Line> lines(truth.size());
    const int64_t slab = bytes_of(dtype, by.extent * by.after);
    for (int64_t from = 0; from < by.before; from += slabs_a_time)
      sum_lines(lines, by, dtype, found.data() + from * slab, from,
                std::min(slabs_a_time, by.before - from));
    return accept_sums(lines, truth, bounds_of(allowed, shown, family), "here");
  }

  Dtype dtype;
  graph::Projection by;
  std::vector<double> truth;
  std::vector<std::byte> found;
};
}  // namespace

TEST(Sums, OfHonestlyRoundedOutputsPassAlongAnyAxis) {
  for (const auto& [dtype, bound] :
       {std::pair{Dtype::f32, 1e-7}, {Dtype::bf16, 0x1p-8}, {Dtype::f16, 0x1p-11}})
    for (const auto& [before, extent, after] :
         {std::array<int64_t, 3>{50, 5000, 1}, {1, 300, 17}, {7, 33, 5000}})
      EXPECT_TRUE(Sample(dtype, before, extent, after).judged(bound))
          << name_of(dtype) << " " << before << " " << after;
}

TEST(Sums, AreOffWhereOneElementOfALineIs) {
  for (const int64_t after : {1, 900}) {
    Sample sample(Dtype::f32, 20, 700, after);
    const int64_t at = 13 * 700 * after + 5 * after + after / 2;
    sample.set(at, sample.get(at) + 0.001);
    const Status status = sample.judged(1e-7);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kCandidateWrong);
    EXPECT_NE(status.error().expected.find(fmt::format("line {} of", 13 * after + after / 2)),
              std::string::npos)
        << status.error().expected;
  }
}

TEST(Sums, OfLinesThatAreInfiniteSayNothing) {
  Sample sample(Dtype::f32, 20, 700, 1);
  sample.set(700 * 3 + 1, -HUGE_VAL);
  const Status refused = sample.judged(1e-7);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kCandidateNonFinite);
  sample.truth[3] = -HUGE_VAL;
  EXPECT_TRUE(sample.judged(1e-7));
  sample.truth[3] = std::nan("");
  sample.set(700 * 3 + 1, std::nan(""));
  EXPECT_TRUE(sample.judged(1e-7));
  sample.set(700 * 4 + 1, 50);
  EXPECT_FALSE(sample.judged(1e-7));
}

TEST(Sums, AreOffOverAllLinesWhereEachIsALittle) {
  Sample sample(Dtype::f32, 400, 500, 1);
  Random random(9);
  for (int64_t i = 0; i < 400 * 500; ++i)
    sample.set(i, sample.get(i) * (1 + 4.5e-7 * random.normal()));
  const Status status = sample.judged(1e-7);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().expected.find("all lines"), 0u) << status.error().expected;
}

TEST(Sums, AreHeldToWhatTheComparedRowsShowWhereThatIsLess) {
  const Bounds wide = bounds_of(1e-3, 1, InputFamily::normal);
  const Bounds tight = bounds_of(1e-3, 2e-4, InputFamily::normal);
  const Bounds exact = bounds_of(1e-3, 0, InputFamily::normal);
  EXPECT_EQ(std::pair(wide.line, wide.all), std::pair(16e-3, 4e-3));
  EXPECT_EQ(std::pair(tight.line, tight.all), std::pair(2e-3, 1e-3));
  EXPECT_EQ(std::pair(exact.line, exact.all), std::pair(1e-3, 1e-3));
  // One element of a line of 1024 in bf16, by one and a half of its deviation.
  Sample sample(Dtype::bf16, 20, 1024, 1);
  sample.set(5000, sample.get(5000) + 1.5);
  EXPECT_TRUE(sample.judged(0x1p-8));
  EXPECT_FALSE(sample.judged(0x1p-8, 3, 0.0017));
}

// Large terms that cancel leave what was rounded while they stood; few elements have such, and none
// of those that were compared.
TEST(Sums, OfAnHonestProductOfOutliersPass) {
  constexpr int64_t kM = 256;
  constexpr int64_t kN = 256;
  constexpr int64_t kK = 2048;
  constexpr uint64_t kSeed = 20;  // one in which a line is off by more than other inputs may be
  std::vector<float> a(kM * kK);
  std::vector<float> b(kK * kN);
  fill({kSeed, 0, InputFamily::outliers}, a.data(), 0, kM * kK);
  fill({kSeed, 1, InputFamily::outliers}, b.data(), 0, kK * kN);
  Sample sample(Dtype::f32, kM, kN, 1);
  std::ranges::fill(sample.truth, 0.0);
  double errors = 0;
  double squares = 0;
  for (int64_t m = 0; m < kM; ++m) {
    std::vector<float> sums(kN);
    std::vector<double> exact(kN);
    for (int64_t k = 0; k < kK; ++k)
      for (int64_t n = 0; n < kN; ++n) {
        sums[n] += a[m * kK + k] * b[k * kN + n];
        exact[n] += static_cast<double>(a[m * kK + k]) * b[k * kN + n];
      }
    for (int64_t n = 0; n < kN; ++n) {
      sample.set(m * kN + n, sums[n]);
      sample.truth[m] += sample.by.signs[n] * exact[n];
      if (m < 8) {
        errors += (sums[n] - exact[n]) * (sums[n] - exact[n]);
        squares += exact[n] * exact[n];
      }
    }
  }
  const double shown = std::sqrt(errors / squares);
  EXPECT_TRUE(sample.judged(4.8e-7, 3, shown, InputFamily::outliers));
  EXPECT_FALSE(sample.judged(4.8e-7, 3, shown));
  sample.set(5000, 0);
  EXPECT_FALSE(sample.judged(4.8e-7, 3, shown, InputFamily::outliers));
}

TEST(Sums, ThatAreNotFiniteAreRefused) {
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::f16})
    for (const double value : {HUGE_VAL, std::numeric_limits<double>::quiet_NaN()}) {
      Sample sample(dtype, 9, 64, 1);
      sample.set(70, value);
      const Status status = sample.judged(0.01);
      ASSERT_FALSE(status);
      EXPECT_EQ(status.error().code, ErrorCode::kCandidateNonFinite) << name_of(dtype);
    }
}
}  // namespace warploom::verify
