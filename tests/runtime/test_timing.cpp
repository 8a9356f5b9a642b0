#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>
#include "base/error.h"
#include "base/random.h"
#include "codegen/launch_list.h"
#include "fixtures.h"
#include "runtime/executor.h"
#include "runtime/timing.h"

namespace warploom::runtime {
namespace {
struct Timing : ::testing::Test {
  std::unique_ptr<Executor> device = *Executor::open(Engine::cpu);
  std::string order;

  // Calls that take a known time, and say in what order they were made.
  std::vector<Call> sleeper(const std::string& name, int us, size_t calls = 1) {
    return std::vector<Call>(calls, [this, name, us]() -> Status {
      order += name;
      const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(us);
      while (std::chrono::steady_clock::now() < until) {}
      return ok();
    });
  }
};

TEST_F(Timing, TellsAFastFromASlowAlternative) {
  const std::vector<std::vector<Call>> alternatives = {sleeper("f", 50), sleeper("s", 500)};
  const auto samples = measure(*device, alternatives, {.max_samples = 30, .budget_ms = 50});
  ASSERT_OK(samples);
  EXPECT_GE((*samples)[0].median_us, 50);
  EXPECT_GE((*samples)[1].median_us, 500);
  EXPECT_LT((*samples)[0].median_us, (*samples)[1].median_us);
  EXPECT_LE((*samples)[0].low_us, (*samples)[0].median_us);
  EXPECT_GE((*samples)[0].high_us, (*samples)[0].median_us);
}

TEST_F(Timing, AlternatesAndTurnsTheOrderRound) {
  const std::vector<std::vector<Call>> alternatives = {sleeper("a", 100), sleeper("b", 100)};
  ASSERT_OK(
      measure(*device, alternatives, {.min_samples = 4, .max_samples = 4, .budget_ms = 1000}));
  EXPECT_EQ(order,
            "ab"
            "abbaabba");
}

TEST_F(Timing, CallsAllUntimedWhileTheyWarmUp) {
  const std::vector<std::vector<Call>> alternatives = {sleeper("a", 1000), sleeper("b", 1000)};
  const auto samples =
      measure(*device, alternatives,
              {.min_samples = 2, .max_samples = 2, .budget_ms = 1000, .warm_up_ms = 20});
  ASSERT_OK(samples);
  EXPECT_EQ((*samples)[0].us.size(), 2u);
  EXPECT_GT(order.size(), 2u + 4u);  // the first calls, and those that count
  EXPECT_EQ(order.substr(0, 4), "abab");
}

TEST_F(Timing, TimesShortCallsInSeriesOverTheirSets) {
  const std::vector<std::vector<Call>> alternatives = {sleeper("a", 2, 4), sleeper("b", 3, 4)};
  const auto samples = measure(*device, alternatives, {.max_samples = 20, .short_us = 1000});
  ASSERT_OK(samples);
  EXPECT_EQ((*samples)[0].calls_per_sample, 4);
  EXPECT_EQ((*samples)[1].calls_per_sample, 4);
}

TEST_F(Timing, NeverTimesOnlySomeInSeries) {
  const std::vector<std::vector<Call>> alternatives = {sleeper("a", 2, 4), sleeper("b", 3)};
  const auto samples = measure(*device, alternatives, {.max_samples = 20});
  ASSERT_OK(samples);
  EXPECT_EQ((*samples)[0].calls_per_sample, 1);
}

TEST_F(Timing, KeepsToItsBudget) {
  const std::vector<std::vector<Call>> alternatives = {sleeper("a", 1000)};
  const auto samples =
      measure(*device, alternatives, {.min_samples = 3, .max_samples = 100000, .budget_ms = 20});
  ASSERT_OK(samples);
  EXPECT_GE((*samples)[0].us.size(), 3u);
  EXPECT_LT((*samples)[0].us.size(), 40u);
}

TEST(MedianInterval, IsTheValueWhereAllAreEqual) {
  const std::vector<double> values(10, 3.5);
  const Interval interval = median_interval(values);
  EXPECT_EQ(interval.median_us, 3.5);
  EXPECT_EQ(interval.low_us, 3.5);
  EXPECT_EQ(interval.high_us, 3.5);
}

TEST(MedianInterval, NarrowsWithMoreSamples) {
  Random random(7);
  std::vector<double> values;
  for (int i = 0; i < 1000; ++i)
    values.push_back(100 + random.normal());
  const Interval few = median_interval(std::span(values).first(20));
  const Interval many = median_interval(values);
  EXPECT_LT(many.high_us - many.low_us, few.high_us - few.low_us);
  EXPECT_LE(many.low_us, many.median_us);
  EXPECT_GE(many.high_us, many.median_us);
  EXPECT_NEAR(many.median_us, 100, 0.2);
}

TEST(MedianInterval, IsTheSameForTheSameSeed) {
  const std::vector<double> values = {5, 1, 4, 2, 3, 9, 7};
  EXPECT_EQ(median_interval(values, 3).low_us, median_interval(values, 3).low_us);
  EXPECT_EQ(median_interval(values).median_us, 4);
}
}  // namespace
}  // namespace warploom::runtime
