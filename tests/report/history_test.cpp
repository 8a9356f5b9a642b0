// What the archive knows of a search, over its seconds.
#include "report/history.h"
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include "archive/archive.h"
#include "base/file.h"

namespace warploom::report {
namespace {
using nlohmann::json;

class History : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(archive.add_problem(problem)); }

  void record(const std::string& schedule, double us) {
    ASSERT_TRUE(archive.record({.problem = problem.key,
                                .schedule = schedule,
                                .family = "direct",
                                .stage = archive::Stage::screened,
                                .median_us = us,
                                .low_us = us * 0.9,
                                .high_us = us * 1.1}));
  }

  json read() {
    const auto history = history_of(archive, problem);
    EXPECT_TRUE(history);
    return history.value_or(json());
  }

  ScratchFolder scratch{"history-test"};
  archive::Archive archive = *archive::Archive::open(scratch.path() / "a.sqlite");
  archive::Problem problem{std::string(32, 'a'), "mm", "fp32", "x86-64-v4", "a CPU", ""};
};

TEST_F(History, CandidatesStandAtTheirSecondsOfSearch) {
  ASSERT_TRUE(archive.begin_run({.problem = problem.key}));
  record("direct rows=1", 20);
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  record("direct rows=2", 10);
  record("direct rows=1", 15);  // measured again as a finalist: found when it was first
  const json history = read();
  const double first = history["candidates"][0]["seconds"];
  const double second = history["candidates"][1]["seconds"];
  EXPECT_GE(first, 0);
  EXPECT_GE(second - first, 0.02);
  EXPECT_LT(second, 60);
  EXPECT_EQ(history["candidates"][0]["median_us"], 15);
}

TEST_F(History, RunsOfAProblemAreOneSearch) {
  const auto run = archive.begin_run({.problem = problem.key});
  record("direct rows=1", 20);
  ASSERT_TRUE(archive.finish_run(*run, {.problem = problem.key, .status = "done", .seconds = 50}));
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ASSERT_TRUE(archive.begin_run({.problem = problem.key}));
  record("direct rows=2", 10);
  EXPECT_GE(read()["candidates"][1]["seconds"].get<double>(), 50);
}

TEST_F(History, WithoutRunsSecondsAreNotKnownAndCandidatesStandInTheirOrder) {
  record("direct rows=1", 20);
  record("direct rows=2", 10);
  const json history = read();
  EXPECT_TRUE(history["candidates"][0]["seconds"].is_null());
  const Progress progress = progress_of(history);
  EXPECT_FALSE(progress.seconds);
  EXPECT_EQ(progress.bests, (std::vector<std::pair<double, double>>{{1, 20}, {2, 10}}));
}

TEST_F(History, BestsAreThoseBetterThanAllBefore) {
  ASSERT_TRUE(archive.begin_run({.problem = problem.key}));
  for (const double us : {20.0, 30.0, 10.0, 10.0, 12.0})
    record(fmt::format("direct rows={}", us), us);
  const Progress progress = progress_of(read());
  ASSERT_EQ(progress.bests.size(), 2u);
  EXPECT_EQ(progress.bests[1].second, 10);
}

TEST_F(History, ThePictureHasStepsIntervalsAndSeconds) {
  ASSERT_TRUE(archive.begin_run({.problem = problem.key, .reference = "x", .reference_us = 15}));
  record("direct rows=1", 20);
  record("direct rows=2", 10);
  const std::string picture = read()["picture"];
  for (const char* part :
       {"class=\"so-far\"", "class=\"interval", "seconds of search", "class=\"reference\""})
    EXPECT_NE(picture.find(part), picture.npos) << part;
}
}  // namespace
}  // namespace warploom::report
