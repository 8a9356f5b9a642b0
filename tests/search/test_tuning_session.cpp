#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <map>
#include <optional>
#include <vector>
#include "archive/archive.h"
#include "base/dtype.h"
#include "base/error.h"
#include "base/file.h"
#include "children.h"
#include "fake_family.h"
#include "graph/builder.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "search/candidate.h"
#include "search/optimize.h"
#include "search/options.h"
#include "search/search_space.h"
#include "search/task.h"
#include "search/tuning_session.h"
#include "target/capabilities.h"
#include "verify/fake_kernels.h"

namespace warploom::search {
namespace {
using std::chrono::steady_clock;

class TuningSessionTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ::setenv("XDG_CACHE_HOME", cache_.emplace("search-test").path().c_str(), 1);
  }

  static void TearDownTestSuite() { cache_.reset(); }

  inline static std::optional<ScratchFolder>
      cache_;  // made by tests alone, not by the evaluators that this program is, too
  ScratchFolder folder_{"search-archive"};

  Options options(double seconds = 60) const {
    Options out;
    out.budget_seconds = seconds;
    out.archive = folder_.path() / "archive.sqlite";
    return out;
  }

  std::vector<archive::Candidate> recorded() const {
    auto opened = archive::Archive::open(folder_.path() / "archive.sqlite");
    return *opened->candidates(opened->problems()->front().key);
  }
};

TEST_F(TuningSessionTest, FindsTheRightOneAndRefusesTheOthersByCode) {
  const FakeFamily family(
      {"wrong_tail", "slow", "crash", "right", "outside", "uninitialised", "no_compile", "memory"});
  const auto outcome = tune(task_of(family), options());
  ASSERT_TRUE(outcome) << describe(outcome.error());
  EXPECT_EQ(outcome->schedule.as<FakeConfig>().body, 3);
  EXPECT_EQ(outcome->candidates, 8);
  EXPECT_GT(outcome->verdict.median_us, 0);
  EXPECT_FALSE(outcome->list.kernels.empty());
  std::map<std::string, std::string> codes;
  const auto rows = recorded();
  for (const auto& row : rows)
    codes[row.schedule] = row.error_code;
  EXPECT_EQ(codes.at("fake body=0 variant=0"), "candidate-wrong");
  EXPECT_EQ(codes.at("fake body=2 variant=0"), "candidate-crashed");
  EXPECT_EQ(codes.at("fake body=4 variant=0"), "candidate-wrote-input");
  EXPECT_EQ(codes.at("fake body=5 variant=0"), "candidate-unwritten");
  EXPECT_EQ(codes.at("fake body=6 variant=0"), "compile-failed");
  EXPECT_EQ(codes.at("fake body=7 variant=0"), "candidate-forbidden");
  EXPECT_EQ(rows.size(), 8u);
  EXPECT_EQ(std::count_if(rows.begin(), rows.end(),
                          [](const auto& row) { return row.stage == archive::Stage::promoted; }),
            1);
}

TEST_F(TuningSessionTest, AHangingCandidateDoesNotStopTheSearch) {
  const FakeFamily family({"right", "hang"});
  const auto outcome = tune(task_of(family), options());
  ASSERT_TRUE(outcome) << describe(outcome.error());
  EXPECT_EQ(outcome->refused, 1);
  EXPECT_TRUE(std::ranges::count(recorded(), "candidate-hung", &archive::Candidate::error_code));
}

TEST_F(TuningSessionTest, WithoutARightOneTheRefusalsAreSummedUp) {
  const FakeFamily family({"wrong_tail", "zeros", "no_compile"});
  const auto outcome = tune(task_of(family), options());
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, ErrorCode::kNoCorrectCandidate);
  EXPECT_NE(outcome.error().found.find("2 candidate-wrong"), std::string::npos)
      << outcome.error().found;
}

TEST_F(TuningSessionTest, ASearchThatIsDoneIsAnsweredByTheArchive) {
  const FakeFamily family({"right", "slow", "wrong_tail"});
  const auto first = tune(task_of(family), options());
  ASSERT_TRUE(first) << describe(first.error());
  EXPECT_FALSE(first->recalled);
  const auto again = tune(task_of(family), options(30));
  ASSERT_TRUE(again) << describe(again.error());
  EXPECT_TRUE(again->recalled);
  EXPECT_EQ(again->candidates, 0);
  EXPECT_EQ(again->schedule, first->schedule);
  EXPECT_EQ(again->list.kernels.at(0).source, first->list.kernels.at(0).source);
  EXPECT_EQ(again->verdict.median_us, first->verdict.median_us);
  EXPECT_EQ(again->reference, first->reference);
}

TEST_F(TuningSessionTest, TheArchiveAnswersForNoOtherSearchAndNoOtherText) {
  const FakeFamily family({"right", "slow"});
  ASSERT_TRUE(tune(task_of(family), options()));
  const auto recalled = [&](const FakeFamily& of, const Options& asked) {
    return tune(task_of(of), asked)->recalled;
  };
  Options other = options();
  other.seed = 2;
  EXPECT_FALSE(recalled(family, other));
  EXPECT_FALSE(recalled(family, options(61)));
  other = options();
  other.max_candidates = 2;
  EXPECT_FALSE(recalled(family, other));
  EXPECT_FALSE(
      recalled(FakeFamily({"slow", "right"}), options()));  // the same schedules, other kernels
}

TEST_F(TuningSessionTest, TheArchiveAnswersForNoOtherMachineAndWithNoImpossibleTime) {
  const FakeFamily family({"right", "slow"});
  const auto first = tune(task_of(family), options());
  ASSERT_TRUE(first) << describe(first.error());
  Task larger = task_of(family);
  Task faster = task_of(family);
  larger.space.capabilities.num_sms += 4;
  EXPECT_FALSE(tune(larger, options())->recalled);
  faster.setup.floor_us = 2 * first->verdict.median_us;
  const auto refused = tune(faster, options());
  EXPECT_FALSE(refused && refused->recalled);
}

TEST_F(TuningSessionTest, WhatWasInterruptedGoesOnThoughAnEarlierSearchWasDone) {
  const FakeFamily family({"right", "slow"}, 4);
  ASSERT_TRUE(tune(task_of(family), options()));
  std::atomic<bool> interrupted = false;
  Options forced = options();
  forced.force_search = true;
  forced.interrupted = &interrupted;
  forced.on_progress = [&](const Progress& progress) { interrupted = progress.candidates > 0; };
  (void)tune(task_of(family), forced);
  EXPECT_FALSE(tune(task_of(family), options())->recalled);
  EXPECT_TRUE(tune(task_of(family), options())->recalled);
}

TEST_F(TuningSessionTest, ASecondRunThatGoesOnwardJudgesOnlyTheBestAgain) {
  const FakeFamily family({"right", "slow", "wrong_tail"});
  ASSERT_TRUE(tune(task_of(family), options()));
  Options forced = options();
  forced.force_search = true;
  const auto again = tune(task_of(family), forced);
  ASSERT_TRUE(again) << describe(again.error());
  EXPECT_EQ(again->candidates, 1);
  EXPECT_EQ(again->schedule.as<FakeConfig>().body, 0);
  EXPECT_GT(again->verdict.median_us, 0);
}

TEST_F(TuningSessionTest, TheNumberOfCandidatesIsKept) {
  const FakeFamily family({"right"}, 20);
  Options limited = options();
  limited.max_candidates = 3;
  const auto outcome = tune(task_of(family), limited);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->candidates, 3);
}

TEST_F(TuningSessionTest, TheBudgetIsKept) {
  const FakeFamily family({"right"}, 2000);
  Options limited = options(4);
  const auto start = steady_clock::now();
  const auto outcome = tune(task_of(family), limited);
  const double took = std::chrono::duration<double>(steady_clock::now() - start).count();
  ASSERT_TRUE(outcome) << describe(outcome.error());
  EXPECT_LT(took, 12);  // what tests run on is shared with several builds
}

TEST_F(TuningSessionTest, AnInterruptReturnsTheBestSoFar) {
  const FakeFamily family({"right"}, 2000);
  std::atomic<bool> interrupted{false};
  Options stopped = options(300);
  stopped.interrupted = &interrupted;
  stopped.on_progress = [&](const Progress& progress) { interrupted = progress.candidates >= 3; };
  const auto outcome = tune(task_of(family), stopped);
  ASSERT_TRUE(outcome) << describe(outcome.error());
  EXPECT_TRUE(outcome->interrupted);
  EXPECT_EQ(outcome->candidates, 3);
}

TEST_F(TuningSessionTest, AnInterruptBeforeAnythingWasFoundSaysSo) {
  const FakeFamily family({"right"});
  const std::atomic<bool> interrupted{true};
  Options stopped = options();
  stopped.interrupted = &interrupted;
  const auto outcome = tune(task_of(family), stopped);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, ErrorCode::kInterrupted);
}

std::atomic<bool> signalled{false};

TEST_F(TuningSessionTest, ASearchThatGetsSigintEndsWithItsBest) {
  const FakeFamily family({"right"}, 2000);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGINT, [](int) { signalled = true; });
    Options stopped = options(300);
    stopped.interrupted = &signalled;
    stopped.on_progress = [&](const Progress& progress) {
      if (progress.candidates > 0) (void)!::write(ends[1], &progress.candidates, sizeof(int));
    };
    const auto outcome = tune(task_of(family), stopped);
    ::_exit(outcome && outcome->interrupted ? 130 : 1);
  }
  ::close(ends[1]);
  int judged = 0;
  for (int i = 0; i < 2; ++i)
    ASSERT_EQ(::read(ends[0], &judged, sizeof judged), static_cast<ssize_t>(sizeof judged));
  const auto start = steady_clock::now();
  ::kill(child, SIGINT);
  int status = 0;
  ::waitpid(child, &status, 0);
  ::close(ends[0]);
  EXPECT_EQ(WEXITSTATUS(status), 130);
  EXPECT_LT(std::chrono::duration<double>(steady_clock::now() - start).count(), 5);
}

TEST_F(TuningSessionTest, AKilledSearchGoesOnWhereItStopped) {
  const FakeFamily family({"right", "wrong_tail"}, 10);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    Options running = options(300);
    running.on_progress = [&](const Progress& progress) {
      (void)!::write(ends[1], &progress.candidates, sizeof(int));
    };
    (void)tune(task_of(family), running);
    ::_exit(0);
  }
  ::close(ends[1]);
  int judged = 0;
  while (judged < 6)
    ASSERT_EQ(::read(ends[0], &judged, sizeof judged), static_cast<ssize_t>(sizeof judged));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ends[0]);
  const auto kept = recorded().size();
  EXPECT_GE(static_cast<int>(kept), judged);
  const auto outcome = tune(task_of(family), options());
  ASSERT_TRUE(outcome) << describe(outcome.error());
  EXPECT_LE(outcome->candidates, 20 - static_cast<int>(kept) + 1);  // the rest, and the best again
  EXPECT_EQ(recorded().size(), 20u);
}

TEST_F(TuningSessionTest, AnEvaluatorKilledInTheMiddleIsReplaced) {
  const FakeFamily family({"right"}, 6);
  Options running = options();
  running.on_progress = [&](const Progress& progress) {
    if (progress.candidates == 2) ::kill(evaluator_process(), SIGKILL);
  };
  const auto outcome = tune(task_of(family), running);
  ASSERT_TRUE(outcome) << describe(outcome.error());
  EXPECT_EQ(outcome->candidates, 6);
  EXPECT_EQ(outcome->refused, 0);
}

TEST_F(TuningSessionTest, AFullDiskIsSaidWithTheBestSoFarAndTheSearchGoesOnOnceThereIsRoom) {
  const FakeFamily family({"right"}, 500);
  { ASSERT_TRUE(archive::Archive::open(folder_.path() / "archive.sqlite")); }
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    Options running = options(100);
    int seen = 0;
    running.on_progress = [&](const Progress& progress) {
      seen = progress.candidates;
      if (seen != 2) return;
      const rlimit none{0, 0};
      ::setrlimit(RLIMIT_FSIZE, &none);
    };
    const auto outcome = tune(task_of(family), running);
    if (outcome || outcome.error().code != ErrorCode::kDiskFull) ::_exit(1);
    ::_exit(outcome.error().found.find("the best so far: fake body=0") == std::string::npos ? 2
                                                                                            : 0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  const auto kept = recorded();
  EXPECT_GE(kept.size(), 2u);
  Options again = options();
  again.max_candidates = static_cast<int>(kept.size()) + 3;
  const auto outcome = tune(task_of(family), again);
  ASSERT_TRUE(outcome) << describe(outcome.error());
  EXPECT_EQ(outcome->candidates, 3);
  EXPECT_EQ(recorded().size(), kept.size() + 3);
}

// Of which the machine's moment, and so the reference beside it, says more than the time alone.
TEST(ComparableTime, OfFinalistsIsByTheReferenceThatTookTurnsWithThem) {
  const auto finalist = [](double us, double speedup) {
    Candidate out;
    out.verdict.median_us = us;
    out.verdict.speedup.median = speedup;
    return out;
  };
  const Candidate disturbed = finalist(150, 1.2);
  const Candidate quiet = finalist(110, 1.0);
  EXPECT_LT(comparable_us(disturbed, 120), comparable_us(quiet, 120));
  EXPECT_EQ(comparable_us(quiet, 120), 120);
  EXPECT_EQ(comparable_us(disturbed, 0), 150);
  EXPECT_EQ(comparable_us(finalist(90, 0), 120), 90);
}

TEST(DefaultTrack, GoesByTheWidestInput) {
  graph::Builder builder("t");
  const auto x = builder.input("x", Dtype::bf16, {4, 4});
  const auto w = builder.input("w", Dtype::bf16, {4, 4});
  builder.output(builder.add(graph::OpKind::MatMul, {x, w}));
  EXPECT_EQ(default_track(*builder.finish()), Track::bf16);
  EXPECT_EQ(default_track(fake::matmul_graph()), Track::fp32);
}
}  // namespace
}  // namespace warploom::search
