#include <gtest/gtest.h>
#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>
#include "common/median.h"
#include "runtime/noise.h"
#include "runtime/standing.h"
#include "runtime/timing.h"

namespace warploom::runtime {
namespace {
using std::chrono::seconds;
using Counters = NoiseWatch::Counters;

// A minute on two cores of which all is known: others took 0.02 of a core, nobody waited.
struct Reading {
  Counters start{1, 0, 1, 0, 0, 0, {}};
  Counters end{1 + 40 + 1.2, 0, 41, 0.1, 0, 30, std::chrono::steady_clock::time_point(seconds(60))};

  Noise noise() const { return noise_between(start, end, 2); }
};

TEST(Noise, AQuietMachineIsSaidToBeQuiet) {
  Noise noise = Reading{}.noise();
  noise.load = 0.4;
  EXPECT_FALSE(noise.busy());
  EXPECT_EQ(noise.text(), "quiet");
  EXPECT_NEAR(*noise.others, 0.02, 1e-9);
  EXPECT_NEAR(*noise.switches, 0.5, 1e-9);
}

TEST(Noise, WaitingForACoreThatOthersHadIsBusyAndSaidWithTheLoad) {
  Reading reading;
  reading.end.waited = 0.31 / 0.69 * 40;
  reading.end.busy = *reading.end.ran + 17.98;  // 0.3 of a core: others alone would not be busy
  Noise noise = reading.noise();
  noise.load = 4.1;
  EXPECT_TRUE(noise.busy());
  EXPECT_EQ(noise.text(), "busy (load 4.1 on 2 cores, run delay 31 %)");
}

TEST(Noise, ThreadsOfOursThatWaitForEachOtherAreNoBusyMachine) {
  Reading reading;
  reading.end.waited = 40;
  EXPECT_FALSE(reading.noise().busy());
  EXPECT_LT(*reading.noise().run_delay, 0.05);
}

TEST(Noise, OthersOnTheCoresAreBusyThoughNobodyWaited) {
  Reading reading;
  *reading.end.busy += 30;
  EXPECT_EQ(reading.noise().reasons(), std::vector<std::string>{"others used 0.5 of 2 cores"});
}

TEST(Noise, AHypervisorOrAQuotaThatTakesTimeAwayIsBusy) {
  Reading stolen;
  stolen.end.stolen = 12;
  EXPECT_EQ(stolen.noise().text(), "busy (the hypervisor took 10 % of the cores' time)");
  Reading throttled;
  throttled.end.throttled = 6;
  EXPECT_EQ(throttled.noise().text(), "busy (a quota stopped it 10 % of the time)");
}

TEST(Noise, WhatAKernelDoesNotTellIsUnknownAndNullNeverNought) {
  Reading reading;
  reading.start.waited.reset();
  reading.end.stolen.reset();
  const nlohmann::json said = to_json(reading.noise());
  EXPECT_TRUE(said["run_delay"].is_null());
  EXPECT_TRUE(said["stolen"].is_null());
  EXPECT_TRUE(said["load"].is_null());
  EXPECT_TRUE(said["others"].is_number());
  EXPECT_TRUE(to_json(Noise{}).is_null());
  EXPECT_EQ(Noise{}.text(), "not known");
}

TEST(Noise, TicksOfAShortReadingTellNothing) {
  Reading reading;
  reading.end.at = std::chrono::steady_clock::time_point(std::chrono::milliseconds(200));
  EXPECT_FALSE(reading.noise().others);
}

TEST(Noise, ComesBackFromItsJson) {
  Reading reading;
  reading.end.waited = 20;
  Noise noise = reading.noise();
  noise.spread = 0.5;
  EXPECT_EQ(to_json(noise_from_json(to_json(noise))), to_json(noise));
  EXPECT_FALSE(noise_from_json(nullptr).watched);
}

TEST(Noise, OfSeveralMeasurementsTheWorstCounts) {
  Noise quiet = Reading{}.noise();
  Noise spread = quiet;
  spread.spread = 0.9;
  EXPECT_TRUE(worse_of(quiet, spread).busy());
  EXPECT_TRUE(worse_of(spread, quiet).busy());
  EXPECT_TRUE(worse_of({}, quiet).watched);
}

TEST(Noise, IsReadOfThisMachine) {
  const NoiseWatch watch({}, true);
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(120);
  while (std::chrono::steady_clock::now() < until) {}
  const Noise noise = watch.since_start();
  EXPECT_TRUE(noise.watched);
  EXPECT_GT(noise.cores, 0);
  if (noise.run_delay) {
    EXPECT_GE(*noise.run_delay, 0);
    EXPECT_LT(*noise.run_delay, 1);
  }
}

TEST(Noise, OfAGpuTheCoresSayNothing) {
  const NoiseWatch watch({}, false);
  EXPECT_FALSE(watch.since_start().run_delay);
  EXPECT_FALSE(watch.since_start().others);
}

TEST(Spread, IsTheMiddleOverTheMedianAndUnknownOfAFew) {
  std::vector<double> samples;
  for (int i = 0; i <= 100; ++i)
    samples.push_back(100 + i);
  EXPECT_NEAR(*spread_of(samples), 80.0 / 150, 1e-9);
  EXPECT_FALSE(spread_of(std::span(samples).first(4)));
}

// All 5^5 draws with replacement from five values, as the bootstrap samples them.
std::vector<double> all_medians(const std::vector<double>& values) {
  std::vector<double> medians;
  for (int n = 0; n < 3125; ++n) {
    std::vector<double> drawn;
    for (int place = 1; place < 3125; place *= 5)
      drawn.push_back(values[n / place % 5]);
    medians.push_back(wl::median_of(drawn));
  }
  std::ranges::sort(medians);
  return medians;
}

TEST(RatioOf, IsTheBootstrapOfPairsAsAllDrawsGiveIt) {
  const std::vector<double> ours = {10, 11, 10, 30, 10};
  const std::vector<double> reference = {20, 22, 15, 63, 21};  // 2, 2, 1.5, 2.1, 2.1
  const std::vector<double> medians = all_medians({2, 2, 1.5, 2.1, 2.1});
  const Ratio ratio = ratio_of(ours, reference);
  EXPECT_DOUBLE_EQ(ratio.median, 2);
  EXPECT_NEAR(ratio.low, medians[3125 * 25 / 1000], 1e-9);
  EXPECT_NEAR(ratio.high, medians[3125 - 1 - 3125 * 25 / 1000], 1e-9);
}

TEST(RatioOf, KnowsThatWhatDisturbsALapDisturbsBoth) {
  std::vector<double> ours;
  std::vector<double> reference;
  for (int lap = 0; lap < 20; ++lap) {
    const double clock = lap % 2 == 0 ? 1 : 3;
    ours.push_back(10 * clock);
    reference.push_back(15 * clock);
  }
  const Ratio ratio = ratio_of(ours, reference);
  EXPECT_NEAR(ratio.low, 1.5, 1e-9);
  EXPECT_NEAR(ratio.high, 1.5, 1e-9);
  const Interval alone = median_interval(ours);
  EXPECT_GT(alone.high_us, 2 * alone.low_us);
}

TEST(RatioOf, IsUnknownWhereOneSideWasNotTimed) {
  const Ratio ratio = ratio_of(std::vector<double>{1, 2}, {});
  EXPECT_EQ(ratio.median, 0);
  EXPECT_EQ(ratio.high, 0);
}

TEST(DoubtOf, BelievesASteadyReference) {
  const std::vector<double> steady = {4.3, 4.4, 4.3, 4.5, 4.2};
  EXPECT_EQ(doubt_of(steady, {.flops = 5e5, .best_us = 4.2, .ours_us = 6}).words, "");
  EXPECT_EQ(doubt_of({}, {}).words, "");
}

TEST(DoubtOf, ThreadsThatWaitForEachOtherGiveTwoModes) {
  const std::vector<double> waits = {4.3, 500, 510, 4.4, 545, 480, 503, 499, 520, 501};
  const Doubt doubt = doubt_of(waits, {.flops = 5e5});
  EXPECT_NE(doubt.words.find("two modes"), std::string::npos);
  EXPECT_TRUE(doubt.firm);
}

TEST(DoubtOf, AReferenceFarUnderItsOwnRateOfBeforeIsNotBelieved) {
  const Doubt doubt = doubt_of(std::vector<double>(10, 500.0), {.flops = 5e5, .best_us = 4.3});
  EXPECT_NE(doubt.words.find("4.3 us before"), std::string::npos);
  EXPECT_TRUE(doubt.firm);
}

TEST(DoubtOf, ATenthOfAGigaflopASecondIsDoubted) {
  const Doubt doubt = doubt_of(std::vector<double>(10, 1e6), {.flops = 5e7});
  EXPECT_NE(doubt.words.find("GFLOP/s"), std::string::npos);
  EXPECT_FALSE(doubt.firm);
}

TEST(DoubtOf, MoreThanTwentyTimesTheCandidateIsDoubtedThoughItMayBeSo) {
  const Doubt doubt = doubt_of(std::vector<double>(10, 300.0), {.flops = 5e5, .ours_us = 6});
  EXPECT_NE(doubt.words.find("50 times"), std::string::npos);
  EXPECT_FALSE(doubt.firm);
  EXPECT_EQ(doubt_of(std::vector<double>(10, 100.0), {.flops = 5e5, .ours_us = 6}).words, "");
}

const Noise kQuiet{.watched = true, .cores = 2, .others = 0.02, .run_delay = 0.01};
const Noise kBusy{.watched = true, .cores = 2, .load = 4.1, .run_delay = 0.31};

TEST(Standing, ANarrowIntervalBesideOneOnAQuietMachineIsDecided) {
  EXPECT_EQ(standing_of({1.31, 1.27, 1.35, 40}, kQuiet), Standing::faster);
  EXPECT_EQ(standing_of({0.69, 0.67, 0.70, 40}, kQuiet), Standing::slower);
  EXPECT_TRUE(why_undecided({1.31, 1.27, 1.35, 40}, kQuiet).empty());
  EXPECT_NEAR(uncertainty_of({1.31, 1.27, 1.35}), 0.0305, 1e-4);
}

TEST(Standing, WhatHoldsOneOrIsWideIsUndecidedAndSaysWhy) {
  EXPECT_EQ(standing_of({1.01, 0.97, 1.04, 40}, kQuiet), Standing::undecided);
  EXPECT_EQ(why_undecided({1.01, 0.97, 1.04, 40}, kQuiet),
            std::vector<std::string>{"the interval holds 1"});
  EXPECT_EQ(standing_of({3, 2, 4, 40}, kQuiet), Standing::undecided);
  EXPECT_EQ(why_undecided({3, 2, 4, 40}, kQuiet), std::vector<std::string>{"the interval is wide"});
}

TEST(Standing, AFewPairsDecideNothingHoweverAlikeTheyAre) {
  EXPECT_EQ(why_undecided({1.31, 1.31, 1.31, 3}, kQuiet),
            std::vector<std::string>{"there are too few samples"});
  EXPECT_EQ(ratio_of(std::vector<double>{1, 1, 1}, std::vector<double>{2, 2, 2}).pairs, 3);
}

TEST(Standing, NothingIsDecidedOnABusyMachine) {
  EXPECT_EQ(standing_of({105.5, 104, 107, 40}, kBusy), Standing::undecided);
  EXPECT_EQ(why_undecided({105.5, 104, 107, 40}, kBusy),
            std::vector<std::string>{"the machine is busy"});
}

TEST(Standing, WithoutAReferenceItIsUnknown) {
  EXPECT_EQ(standing_of({}, kQuiet), Standing::unknown);
  EXPECT_TRUE(why_undecided({}, kBusy).empty());
}
}  // namespace
}  // namespace warploom::runtime
