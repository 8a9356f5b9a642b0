// Several devices of one machine: candidates go to whichever is free, one at a time each.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include "base/error.h"
#include "base/file.h"
#include "fake_family.h"
#include "search/budget.h"
#include "search/candidate.h"
#include "search/device_lanes.h"
#include "search/measurer.h"
#include "search/requests.h"
#include "search/task.h"
#include "search/tuning_session.h"
#include "verify/evaluator.h"
#include "verify/setup.h"

namespace warploom::search {
namespace {
using std::chrono::milliseconds;

// What pretend devices did, and what they are told to do.
struct Script {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, std::string> models;  // by device; of the others "alike"
  std::set<std::string> lost;                 // devices that are lost with their first candidate
  int meet = 1;                               // so many judgements wait for each other
  int at_work = 0;
  int most_at_work = 0;
  std::map<std::string, int> at_work_on;
  std::map<std::string, int> most_on;
  std::map<std::string, int> judged_by;

  Result<verify::Verdict> judge(const std::string& device) {
    std::unique_lock lock(mutex);
    most_at_work = std::max(most_at_work, ++at_work);
    most_on[device] = std::max(most_on[device], ++at_work_on[device]);
    ++judged_by[device];
    changed.notify_all();
    changed.wait_for(lock, milliseconds(2000), [&] { return most_at_work >= meet; });
    --at_work;
    --at_work_on[device];
    if (lost.contains(device)) return fail({ErrorCode::kEvaluatorLost, "made to be lost"});
    verify::Verdict verdict;
    verdict.accepted = true;
    verdict.median_us = 7;
    return verdict;
  }
};

class PretendDevice : public MeasuringDevice {
 public:
  PretendDevice(std::string device, Script& script) : device_(std::move(device)), script_(script) {}

  Result<std::string> start(const verify::Setup&, const Budget&) override {
    const std::lock_guard lock(script_.mutex);
    const auto found = script_.models.find(device_);
    return found == script_.models.end() ? "alike" : found->second;
  }

  Result<verify::Verdict> judge(const verify::Request&) override { return script_.judge(device_); }

 private:
  std::string device_;
  Script& script_;
};

MakeDevice pretended(Script& script) {
  return [&script](const std::string& device, const std::atomic<bool>*) {
    return std::make_unique<PretendDevice>(device, script);
  };
}

// Whatever holds within some seconds.
template <class Holds> bool soon(const Holds& holds) {
  for (int i = 0; i < 2000 && !holds(); ++i)
    std::this_thread::sleep_for(milliseconds(2));
  return holds();
}

DeviceLanes::Job job_of(int variant) {
  return {.candidate = {.config = FakeConfig{.variant = variant}}};
}

TEST(Devices, JudgeAtOnceAndOneCandidateAtATimeEach) {
  Script script;
  script.meet = 2;
  DeviceLanes lanes({"1", "2"}, pretended(script));
  EXPECT_FALSE(lanes.has_room());
  lanes.start({}, Budget(60), "alike");
  ASSERT_TRUE(soon([&] { return lanes.has_idle(); }));
  for (int variant = 0; variant < 4; ++variant) {
    ASSERT_TRUE(soon([&] { return lanes.has_room(); }));
    lanes.put(job_of(variant));
  }
  std::set<int64_t> seen;
  const auto took = [&] {
    while (auto done = lanes.take()) {
      EXPECT_TRUE(done->verdict);
      seen.insert(done->job.candidate.config.as<FakeConfig>().variant);
    }
    return seen.size() == 4;
  };
  EXPECT_TRUE(soon(took));
  EXPECT_EQ(lanes.pending(), 0u);
  EXPECT_EQ(script.most_at_work, 2);
  EXPECT_EQ(script.most_on["1"], 1);
  EXPECT_EQ(script.most_on["2"], 1);
}

TEST(Devices, OfAnotherModelThanTheFirstAreLeftOut) {
  Script script;
  script.models["2"] = "another";
  DeviceLanes lanes({"1", "2"}, pretended(script));
  lanes.start({}, Budget(60), "alike");
  ASSERT_TRUE(soon([&] { return lanes.has_idle() && !lanes.notes().empty(); }));
  for (int variant = 0; variant < 2; ++variant)
    lanes.put(job_of(variant));
  const auto judged_by = [&](const char* device) {
    const std::lock_guard lock(script.mutex);
    return script.judged_by[device];
  };
  EXPECT_TRUE(soon([&] { return judged_by("1") == 2; }));
  EXPECT_EQ(judged_by("2"), 0);
  ASSERT_EQ(lanes.notes().size(), 1u);
  EXPECT_NE(lanes.notes()[0].find("device 2 is left out: it is of another model, another"),
            std::string::npos)
      << lanes.notes()[0];
}

TEST(Devices, ThatAreLostGiveTheirCandidatesBack) {
  Script script;
  script.lost = {"1"};
  DeviceLanes lanes({"1"}, pretended(script));
  lanes.start({}, Budget(60), "alike");
  ASSERT_TRUE(soon([&] { return lanes.has_idle(); }));
  lanes.put(job_of(0));
  lanes.put(job_of(1));
  std::set<int64_t> back;
  const auto took = [&] {
    while (auto done = lanes.take()) {
      EXPECT_FALSE(done->verdict);
      back.insert(done->job.candidate.config.as<FakeConfig>().variant);
    }
    return back.size() == 2;
  };
  EXPECT_TRUE(soon(took));
  EXPECT_FALSE(lanes.has_room());
  EXPECT_EQ(script.judged_by["1"], 1);
}

TEST(Devices, WhatIsNotJudgedAtTheEndIsGivenBack) {
  Script script;
  DeviceLanes lanes({"1"}, pretended(script));
  lanes.start({}, Budget(60), "alike");
  ASSERT_TRUE(soon([&] { return lanes.has_idle(); }));
  lanes.put(job_of(0));
  lanes.put(job_of(1));
  EXPECT_EQ(lanes.give_back().size(), 2u);
  EXPECT_EQ(lanes.pending(), 0u);
}

// The first device is this machine's CPU; the others are pretended to be of its model.
class DevicesOfAMeasurer : public testing::Test {
 protected:
  void SetUp() override { ::setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1); }

  // Starts it, and waits until the others are ready or left out.
  void start(Measurer& measurer, const Task& task) {
    ASSERT_TRUE(measurer.start(task.setup, budget_));
  }

  std::string own_model(const Task& task) {
    Measurer alone(task, budget_, turns_for({}), limit_);
    EXPECT_TRUE(alone.start(task.setup, budget_));
    return alone.ready().device;
  }

  // All that are pending, by the device that judged them.
  std::map<std::string, int> judged(Measurer& measurer) {
    std::map<std::string, int> by;
    while (measurer.pending() > 0) {
      const auto taken = measurer.take(limit_, quick_request(60, 0));
      EXPECT_TRUE(taken) << describe(taken.error());
      if (!taken) return by;
      if (!*taken) continue;
      EXPECT_TRUE((*taken)->verdict.accepted);
      ++by[(*taken)->proposed.value("device", "none")];
    }
    return by;
  }

  ScratchFolder folder_{"devices"};
  const FakeFamily family_{{"right", "slow"}, 12};
  const Budget budget_{600};
  const milliseconds limit_{60'000};
};

TEST_F(DevicesOfAMeasurer, TakeCandidatesBesideTheFirst) {
  const Task task = task_of(family_);
  Script script;
  script.meet = 2;  // so that each has work while the other has
  for (const char* device : {"1", "2"})
    script.models[device] = own_model(task);
  Measurer measurer(task, budget_, turns_for({}), limit_, nullptr, nullptr,
                    {{"1", "2"}, pretended(script)}, "0");
  start(measurer, task);
  ASSERT_TRUE(soon([&] {
    const std::lock_guard lock(script.mutex);
    return measurer.notes().empty();
  }));
  for (int variant = 0; variant < 12; ++variant)
    measurer.submit({.config = FakeConfig{.variant = variant}});
  auto by = judged(measurer);
  EXPECT_EQ(by["0"] + by["1"] + by["2"], 12);
  EXPECT_GT(by["1"], 0);
  EXPECT_GT(by["2"], 0);
  EXPECT_EQ(script.most_on["1"], 1);
}

TEST_F(DevicesOfAMeasurer, ThatAreLostLeaveTheirWorkToTheFirst) {
  const Task task = task_of(family_);
  Script script;
  script.models["1"] = own_model(task);
  script.lost = {"1"};
  Measurer measurer(task, budget_, turns_for({}), limit_, nullptr, nullptr,
                    {{"1"}, pretended(script)}, "0");
  start(measurer, task);
  for (int variant = 0; variant < 6; ++variant)
    measurer.submit({.config = FakeConfig{.variant = variant}});
  auto by = judged(measurer);
  EXPECT_EQ(by["0"], 6);
  EXPECT_LE(script.judged_by["1"], 1);
}

TEST_F(DevicesOfAMeasurer, OfAnotherModelJudgeNothing) {
  const Task task = task_of(family_);
  Script script;
  Measurer measurer(task, budget_, turns_for({}), limit_, nullptr, nullptr,
                    {{"1"}, pretended(script)}, "0");
  start(measurer, task);
  ASSERT_TRUE(soon([&] { return measurer.notes().size() == 1; }));
  for (int variant = 0; variant < 4; ++variant)
    measurer.submit({.config = FakeConfig{.variant = variant}});
  EXPECT_EQ(judged(measurer)["0"], 4);
  EXPECT_TRUE(script.judged_by.empty());
}

// A finalist's time, and the best's judgement whole, are of the first.
TEST_F(DevicesOfAMeasurer, ConfirmOnTheFirstAlone) {
  const Task task = task_of(family_);
  Script script;
  script.models["1"] = own_model(task);
  Measurer measurer(task, budget_, turns_for({}), limit_, nullptr, nullptr,
                    {{"1"}, pretended(script)}, "0");
  start(measurer, task);
  Candidate candidate{.config = FakeConfig{}};
  const auto measured =
      measurer.measure(candidate, family_.build(FakeConfig{}), finalist_request(60, 0));
  ASSERT_TRUE(measured) << describe(measured.error());
  EXPECT_TRUE(candidate.verdict.accepted);
  EXPECT_TRUE(script.judged_by.empty());
}

TEST_F(DevicesOfAMeasurer, GiveBackTheirWorkWhenTheyRest) {
  const Task task = task_of(family_);
  Script script;
  script.models["1"] = own_model(task);
  Measurer measurer(task, budget_, turns_for({}), limit_, nullptr, nullptr,
                    {{"1"}, pretended(script)}, "0");
  start(measurer, task);
  for (int variant = 0; variant < 4; ++variant)
    measurer.submit({.config = FakeConfig{.variant = variant}});
  const auto first = measurer.take(limit_, quick_request(60, 0));
  ASSERT_TRUE(first);
  const size_t left = measurer.pending();
  measurer.rest();
  EXPECT_EQ(measurer.pending(), left);
  start(measurer, task);
  auto by = judged(measurer);
  int sum = 0;
  for (const auto& [device, count] : by)
    sum += count;
  EXPECT_EQ(sum, static_cast<int>(left));
}
}  // namespace
}  // namespace warploom::search
