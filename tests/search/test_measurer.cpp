// What becomes of candidates between their submission and their verdict.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <chrono>
#include <cstdint>
#include <future>
#include <optional>
#include <vector>
#include "base/error.h"
#include "base/file.h"
#include "codegen/launch_list.h"
#include "fake_family.h"
#include "kernels/config/kernel_config.h"
#include "search/budget.h"
#include "search/candidate.h"
#include "search/measurer.h"
#include "search/options.h"
#include "search/requests.h"
#include "search/task.h"
#include "search/tuning_session.h"
#include "verify/evaluator.h"

namespace warploom::search {
namespace {
using std::chrono::milliseconds;

class MeasurerTest : public testing::Test {
 protected:
  void SetUp() override { ::setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1); }

  ScratchFolder folder_{"measurer"};
  const FakeFamily family_{{"right", "slow"}, 4};
  const Budget budget_{600};
  const milliseconds limit_{60'000};
};

Error refused() {
  return {ErrorCode::kScheduleIllegal, "made to be refused"};
}

// Builders of variant 0 wait until they are let go.
struct Held {
  std::promise<void> released;

  auto build() {
    const std::shared_future<void> go = released.get_future().share();
    return [go](const kernels::KernelConfig& config) -> Result<LaunchList> {
      if (config.as<FakeConfig>().variant == 0) go.wait();
      return fail(refused());
    };
  }
};

Options of_jobs(int jobs) {
  Options options;
  options.jobs = jobs;
  return options;
}

int64_t variant_of(const Result<std::optional<Candidate>>& taken) {
  return taken && *taken ? (*taken)->config.as<FakeConfig>().variant : -1;
}

TEST_F(MeasurerTest, MeasuringDoesNotWaitForACompilerWhileAnotherIsReady) {
  Task task = task_of(family_);
  Held held;
  task.space.build = held.build();
  Measurer measurer(task, budget_, turns_for(of_jobs(2)), limit_);
  for (const int variant : {1, 0, 2})
    measurer.submit({.config = FakeConfig{.variant = variant}});
  EXPECT_EQ(variant_of(measurer.take(limit_, quick_request(60, 0))), 1);
  const auto second = measurer.take(limit_, quick_request(60, 0));
  held.released.set_value();
  EXPECT_EQ(variant_of(second), 2);
  EXPECT_EQ(variant_of(measurer.take(limit_, quick_request(60, 0))), 0);
}

TEST_F(MeasurerTest, TheVeryFirstIsWaitedForThoughAnotherIsReady) {
  Task task = task_of(family_);
  Held held;
  task.space.build = held.build();
  Measurer measurer(task, budget_, turns_for(of_jobs(2)), limit_);
  for (const int variant : {0, 1})
    measurer.submit({.config = FakeConfig{.variant = variant}});
  EXPECT_EQ(variant_of(measurer.take(milliseconds(50), quick_request(60, 0))), -1);
  held.released.set_value();
  EXPECT_EQ(variant_of(measurer.take(limit_, quick_request(60, 0))), 0);
}

TEST_F(MeasurerTest, WhatIsBuiltToTheSameIsCompiledAndJudgedOnce) {
  Task task = task_of(family_);
  task.space.build = [this](const kernels::KernelConfig&) {
    return family_.build(FakeConfig{.body = 0, .variant = 0});
  };
  Measurer measurer(task, budget_, turns_for({}), limit_);
  ASSERT_TRUE(measurer.start(task.setup, budget_));
  std::vector<double> times;
  for (int variant = 0; variant < 3; ++variant)
    measurer.submit({.config = FakeConfig{.variant = variant}});
  while (measurer.pending() > 0) {
    const auto judged = measurer.take(limit_, quick_request(60, 0));
    ASSERT_TRUE(judged && *judged);
    EXPECT_TRUE((*judged)->verdict.accepted);
    times.push_back((*judged)->verdict.median_us);
  }
  ASSERT_EQ(times.size(), 3u);
  EXPECT_EQ(times[0], times[1]);
  EXPECT_EQ(times[0], times[2]);
}

TEST_F(MeasurerTest, GettingReadyEndsWithTheBudget) {
  const Task task = task_of(family_);
  Measurer measurer(task, budget_, turns_for({}), limit_);
  const Status started = measurer.start(task.setup, Budget(0));
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, ErrorCode::kInterrupted);
  EXPECT_FALSE(measurer.is_started());
}

TEST_F(MeasurerTest, AJudgementEndsWithItsTime) {
  const FakeFamily family({"hang"});
  const Task task = task_of(family);
  Measurer measurer(task, budget_, turns_for({}), limit_);
  ASSERT_TRUE(measurer.start(task.setup, budget_));
  measurer.submit({.config = FakeConfig{}});
  verify::Request request = quick_request(60, 0);
  request.until = Budget::Clock::now();
  const auto judged = measurer.take(limit_, request);
  ASSERT_FALSE(judged);
  EXPECT_EQ(judged.error().code, ErrorCode::kInterrupted);
}
}  // namespace
}  // namespace warploom::search
