#include <chrono>
#include "fixtures.h"
#include "runtime/timing.h"
namespace warploom::runtime {
namespace {
// Takes a known time, and says in what order it was called.
class Sleeper final : public Runnable {
 public:
  Sleeper(std::string name, int us, std::string* order, int sets = 1)
      : name_(std::move(name)), us_(us), order_(order), sets_(sets) {}
  std::string name() const override { return name_; }
  Status bind(const Bindings&, int) override { return ok(); }
  int sets() const override { return sets_; }
  Status launch(int) override {
    *order_ += name_;
    const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(us_);
    while (std::chrono::steady_clock::now() < until) {}
    return ok();
  }

 private:
  std::string name_;
  int us_;
  std::string* order_;
  int sets_;
};

struct Timing : ::testing::Test {
  std::unique_ptr<Executor> device = *Executor::open(Engine::cpu, 1);
  std::string order;
};

TEST_F(Timing, TellsAFastFromASlowAlternative) {
  Sleeper fast("f", 50, &order), slow("s", 500, &order);
  std::vector<Runnable*> both = {&fast, &slow};
  const auto samples = measure(*device, both, {.max_samples = 30, .budget_ms = 50});
  ASSERT_OK(samples);
  EXPECT_GE((*samples)[0].median_us, 50);
  EXPECT_GE((*samples)[1].median_us, 500);
  EXPECT_LT((*samples)[0].median_us, (*samples)[1].median_us);
  EXPECT_LE((*samples)[0].low_us, (*samples)[0].median_us);
  EXPECT_GE((*samples)[0].high_us, (*samples)[0].median_us);
}

TEST_F(Timing, AlternatesAndTurnsTheOrderRound) {
  Sleeper a("a", 100, &order), b("b", 100, &order);
  std::vector<Runnable*> both = {&a, &b};
  ASSERT_OK(measure(*device, both, {.warm_up = 1, .min_samples = 4, .max_samples = 4, .budget_ms = 1000}));
  EXPECT_EQ(order,
            "ab"
            "abbaabba");
}

TEST_F(Timing, TimesShortCallsInSeriesOverTheirSets) {
  Sleeper a("a", 2, &order, 4), b("b", 3, &order, 4);
  std::vector<Runnable*> both = {&a, &b};
  const auto samples = measure(*device, both, {.max_samples = 20, .short_us = 1000});
  ASSERT_OK(samples);
  EXPECT_EQ((*samples)[0].calls_per_sample, 4);
  EXPECT_EQ((*samples)[1].calls_per_sample, 4);
}

TEST_F(Timing, NeverTimesOnlySomeInSeries) {
  Sleeper a("a", 2, &order, 4), b("b", 3, &order, 1);
  std::vector<Runnable*> both = {&a, &b};
  const auto samples = measure(*device, both, {.max_samples = 20});
  ASSERT_OK(samples);
  EXPECT_EQ((*samples)[0].calls_per_sample, 1);
}

TEST_F(Timing, KeepsToItsBudget) {
  Sleeper a("a", 1000, &order);
  std::vector<Runnable*> one = {&a};
  const auto samples = measure(*device, one, {.min_samples = 3, .max_samples = 100000, .budget_ms = 20});
  ASSERT_OK(samples);
  EXPECT_GE((*samples)[0].us.size(), 3u);
  EXPECT_LT((*samples)[0].us.size(), 40u);
}

TEST(MedianInterval, IsTheValueWhereAllAreEqual) {
  const std::vector<double> values(10, 3.5);
  const Interval interval = median_interval(values);
  EXPECT_EQ(interval.median, 3.5);
  EXPECT_EQ(interval.low, 3.5);
  EXPECT_EQ(interval.high, 3.5);
}

TEST(MedianInterval, NarrowsWithMoreSamples) {
  Random random(7);
  std::vector<double> values;
  for (int i = 0; i < 1000; ++i) values.push_back(100 + random.normal());
  const Interval few = median_interval(std::span(values).first(20)), many = median_interval(values);
  EXPECT_LT(many.high - many.low, few.high - few.low);
  EXPECT_LE(many.low, many.median);
  EXPECT_GE(many.high, many.median);
  EXPECT_NEAR(many.median, 100, 0.2);
}

TEST(MedianInterval, IsTheSameForTheSameSeed) {
  const std::vector<double> values = {5, 1, 4, 2, 3, 9, 7};
  EXPECT_EQ(median_interval(values, 3).low, median_interval(values, 3).low);
  EXPECT_EQ(median_interval(values).median, 4);
}
}  // namespace
}  // namespace warploom::runtime
