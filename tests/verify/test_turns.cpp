// Judgements of times, of samples that are given.
#include <gtest/gtest.h>
#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>
#include "base/error.h"
#include "runtime/noise.h"
#include "runtime/standing.h"
#include "runtime/timing.h"
#include "verify/evaluator.h"
#include "verify/turns.h"

namespace warploom::verify {
namespace {
const runtime::Noise kQuiet{.watched = true, .cores = 2, .others = 0.02, .run_delay = 0.01};
const runtime::Noise kBusy{.watched = true, .cores = 2, .load = 4.1, .run_delay = 0.31};

runtime::Samples samples(std::vector<double> us) {
  runtime::Samples out;
  static_cast<runtime::Interval&>(out) = runtime::median_interval(us);
  out.us = std::move(us);
  return out;
}

// Around `us`, by at most 2 %.
runtime::Samples steady(double us) {
  std::vector<double> values;
  for (int i = 0; i < 20; ++i)
    values.push_back(us * (1 + 0.001 * (i * 7 % 21)));
  return samples(std::move(values));
}

// Most wait a scheduler's quantum.
runtime::Samples waiting() {
  std::vector<double> values;
  for (int i = 0; i < 20; ++i)
    values.push_back(i % 5 == 0 ? 4.3 + 0.01 * i : 490 + i);
  return samples(std::move(values));
}

// Runs that are given in turn, the last again and again; how many were taken.
struct Series {
  std::vector<Turns> runs;
  ReferenceKnown known{.flops = 5e5};
  size_t taken = 0;

  Verdict verdict() {
    const auto turns = believable_turns(
        [&]() -> Result<Turns> { return runs[std::min(taken++, runs.size() - 1)]; }, known);
    EXPECT_TRUE(turns);
    Verdict out;
    take_figures(out, *turns, 1);
    return out;
  }
};

TEST(Turns, QuietSamplesAreDecidedAtOnce) {
  Series series{.runs = {{{steady(6.2), steady(4.3)}, kQuiet, {}}}};
  const Verdict verdict = series.verdict();
  EXPECT_EQ(series.taken, 1u);
  EXPECT_NEAR(verdict.speedup.median, 4.3 / 6.2, 1e-3);
  EXPECT_EQ(standing_of(verdict.speedup, verdict.noise), runtime::Standing::slower);
  EXPECT_NEAR(verdict.reference_us, 4.3, 0.1);
  EXPECT_EQ(series.known.here_us, verdict.reference_us);
}

TEST(Turns, AReferenceOfTwoModesIsMeasuredAgainAndThePairIsOfOneRun) {
  Series series{
      .runs = {{{steady(9), waiting()}, kBusy, {}}, {{steady(6.2), steady(4.3)}, kQuiet, {}}}};
  const Verdict verdict = series.verdict();
  EXPECT_EQ(series.taken, 2u);
  EXPECT_NEAR(verdict.median_us, 6.2, 0.1) << "the candidate's time is of the same run";
  EXPECT_NEAR(verdict.reference_us, 4.3, 0.1);
  EXPECT_EQ(verdict.reference_dropped, "");
}

TEST(Turns, AReferenceThatKeepsWaitingIsDroppedAndTheReasonSaid) {
  Series series{.runs = {{{steady(6.2), waiting()}, kBusy, {}}}};
  const Verdict verdict = series.verdict();
  EXPECT_EQ(series.taken, 3u);
  EXPECT_EQ(verdict.reference_us, 0);
  EXPECT_EQ(verdict.speedup.median, 0);
  EXPECT_NE(verdict.reference_dropped.find("two modes"), std::string::npos);
  EXPECT_NEAR(verdict.median_us, 6.2, 0.1) << "the candidate's own time is kept";
  EXPECT_EQ(to_json(verdict)["standing"], "unknown");
}

TEST(Turns, AReferenceThatWaitsInEverySampleIsKnownByItsEarlierTime) {
  Series series{.runs = {{{steady(6.2), steady(500)}, kQuiet, {}}}};
  series.known.archived_us = 4.3;
  const Verdict verdict = series.verdict();
  EXPECT_EQ(verdict.reference_us, 0);
  EXPECT_NE(verdict.reference_dropped.find("4.3 us before"), std::string::npos);
  EXPECT_TRUE(verdict.noise.busy()) << "the reference itself tells it";
}

TEST(Turns, ASlowReferenceIsBelievedOnAQuietMachineAfterASecondLook) {
  Series series{.runs = {{{steady(6.2), steady(300)}, kQuiet, {}}}};
  const Verdict verdict = series.verdict();
  EXPECT_EQ(series.taken, 3u);
  EXPECT_NEAR(verdict.reference_us, 300, 10);
  EXPECT_EQ(verdict.reference_dropped, "");
}

TEST(Turns, TheSameReferenceIsDroppedOnABusyMachine) {
  Series series{.runs = {{{steady(6.2), steady(300)}, kBusy, {}}}};
  EXPECT_NE(series.verdict().reference_dropped, "");
}

TEST(Turns, WideSamplesAreUndecided) {
  std::vector<double> wide;
  for (int i = 0; i < 12; ++i)
    wide.push_back(i % 3 == 0 ? 4 : 8);
  Series series{.runs = {{{samples(wide), steady(9)}, kQuiet, {}}}};
  const Verdict verdict = series.verdict();
  EXPECT_GT(verdict.speedup.median, 1);
  EXPECT_EQ(standing_of(verdict.speedup, verdict.noise), runtime::Standing::undecided);
}

TEST(Turns, WithoutAReferenceTheTimeStandsAlone) {
  Series series{.runs = {{{steady(6.2)}, kQuiet, {}}}};
  const Verdict verdict = series.verdict();
  EXPECT_EQ(series.taken, 1u);
  EXPECT_NEAR(verdict.median_us, 6.2, 0.1);
  EXPECT_EQ(verdict.reference_us, 0);
  EXPECT_EQ(verdict.reference_dropped, "");
}
}  // namespace
}  // namespace warploom::verify
