#include <fmt/format.h>
#include <gtest/gtest.h>
#include <linux/prctl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/error.h"
#include "base/file.h"
#include "fake_kernels.h"
#include "graph/builder.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "vendor/match.h"
#include "vendor/program.h"
#include "verify/coverage.h"
#include "verify/evaluator.h"
#include "verify/evaluator_pool.h"
#include "verify/inputs.h"
#include "verify/setup.h"

namespace warploom::verify {
namespace {
Setup setup(const fake::Sizes& sizes = {}) {
  Setup out;
  out.graph = fake::matmul_graph(sizes);
  out.flops = 2.0 * static_cast<double>(sizes.m * sizes.n * sizes.k);
  out.seed = 11;
  return out;
}

Request request(const std::string& body, const fake::Sizes& sizes = {}) {
  Request out;
  out.list = fake::matmul_list(body, sizes);
  out.timing_ms = 10;
  out.candidate_limit_ms = 1500;
  return out;
}

class EvaluatorTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { ::setenv("XDG_CACHE_HOME", cache_.path().c_str(), 1); }

  inline static ScratchFolder cache_{"verify-test"};

  Verdict judged(const std::string& body) {
    if (!evaluator_) {
      auto started = Evaluator::start(setup());
      EXPECT_TRUE(started) << describe(started.error());
      evaluator_.emplace(std::move(*started));
    }
    auto verdict = evaluator_->judge(request(body));
    EXPECT_TRUE(verdict) << describe(verdict.error());
    return std::move(*verdict);
  }

  std::string refused(const std::string& body) {
    const Verdict verdict = judged(body);
    EXPECT_FALSE(verdict.accepted) << body;
    return std::string(code_text(verdict.error_found.code));
  }

  void expect_still_working() {
    const Verdict verdict = judged("right");
    EXPECT_TRUE(verdict.accepted) << describe(verdict.error_found);
  }

  std::optional<Evaluator> evaluator_;
};

TEST_F(EvaluatorTest, ARightCandidateIsAcceptedAndTimed) {
  const Verdict verdict = judged("right");
  ASSERT_TRUE(verdict.accepted) << describe(verdict.error_found);
  EXPECT_GT(verdict.median_us, 0);
  EXPECT_LE(verdict.low_us, verdict.median_us);
  EXPECT_GE(verdict.high_us, verdict.median_us);
  EXPECT_LT(verdict.error, 4.8e-7);
  EXPECT_EQ(verdict.evidence.size(), 2u);
  EXPECT_EQ(verdict.evidence[0].rows_checked, 37);
}

TEST_F(EvaluatorTest, AWholeJudgementUsesEveryFamily) {
  (void)judged("right");
  Request whole = request("right");
  whole.whole = true;
  const auto verdict = evaluator_->judge(whole);
  ASSERT_TRUE(verdict);
  ASSERT_TRUE(verdict->accepted) << describe(verdict->error_found);
  EXPECT_EQ(verdict->evidence.size(), coverage_of(setup().graph).families.size());
  for (const auto& evidence : verdict->evidence)
    EXPECT_EQ(evidence.rows_checked, evidence.rows);
}

// Products of the larger families leave fp32's range on the way, where infinity is as right as
// anything; normal ones must not.
TEST_F(EvaluatorTest, WhatOverflowsOnTheWayIsRefusedOfNormalInputsAlone) {
  const auto judged_with = [&](double up) {
    graph::Builder b("mm");
    const auto product = b.add(graph::OpKind::MatMul, {b.input("x", Dtype::f32, {37, 29}),
                                                       b.input("w", Dtype::f32, {29, 53})});
    const auto times = [&](graph::TensorId x, double by) {
      return b.add(graph::OpKind::Mul,
                   {x, b.constant(fmt::format("by {}", by), Dtype::f32, {}, std::array{by})});
    };
    b.output(times(times(product, up), 1 / up));
    verify::Setup given = setup();
    given.graph = *b.finish();
    given.graph.tensor(given.graph.outputs[0]).name = "y";
    auto evaluator = Evaluator::start(given);
    EXPECT_TRUE(evaluator) << describe(evaluator.error());
    Request whole = request("up_and_down");
    whole.whole = true;
    return *evaluator->judge(whole);
  };
  const Verdict tolerated = judged_with(0x1p120);
  EXPECT_TRUE(tolerated.accepted) << describe(tolerated.error_found);
  EXPECT_EQ(tolerated.evidence[0].rows_checked, 37);
  EXPECT_EQ(tolerated.evidence[2].family, InputFamily::scaled);
  EXPECT_EQ(tolerated.evidence[2].rows_checked, 0);
  EXPECT_EQ(judged_with(1).error_found.code, ErrorCode::kCandidateNonFinite);
}

TEST_F(EvaluatorTest, RangesOfInputsTravelWithTheSetup) {
  verify::Setup given = setup();
  EXPECT_FALSE(to_json(given).contains("ranges"));  // as before there were any
  given.ranges = {{"x", {-5, 4, true}}, {"w", {0, HUGE_VAL, false, true}}};
  const auto back = setup_from_json(nlohmann::json::parse(to_json(given).dump()));
  ASSERT_TRUE(back) << describe(back.error());
  EXPECT_EQ(back->ranges, given.ranges);
}

TEST_F(EvaluatorTest, OneWrongElementOfALargeProductShowsInItsSums) {
  const fake::Sizes large{3000, 3000, 8};  // more than is held whole
  auto evaluator = Evaluator::start(setup(large));
  ASSERT_TRUE(evaluator) << describe(evaluator.error());
  const auto right = evaluator->judge(request("right", large));
  ASSERT_TRUE(right && right->accepted) << describe(right ? right->error_found : right.error());
  EXPECT_LT(right->evidence[0].rows_checked, right->evidence[0].rows);
  EXPECT_EQ(right->evidence[0].sums_checked, large.m);
  const auto wrong = evaluator->judge(request("one_wrong", large));
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->error_found.code, ErrorCode::kCandidateWrong) << describe(wrong->error_found);
  EXPECT_NE(wrong->error_found.message.find("sums"), std::string::npos)
      << describe(wrong->error_found);
}

TEST_F(EvaluatorTest, WrongOnesAreRefusedByTheirCodeAndTheEvaluatorLivesOn) {
  EXPECT_EQ(refused("wrong_tail"), "candidate-wrong");
  const int process = evaluator_->process();
  EXPECT_EQ(refused("wrong_last_row"), "candidate-wrong");
  EXPECT_EQ(refused("zeros"), "candidate-wrong");
  EXPECT_EQ(refused("beyond"), "candidate-wrong");
  EXPECT_EQ(refused("nan"), "candidate-non-finite");
  EXPECT_EQ(refused("unwritten"), "candidate-unwritten");
  EXPECT_EQ(refused("uninitialised"), "candidate-unwritten");
  EXPECT_EQ(refused("no_compile"), "compile-failed");
  EXPECT_EQ(evaluator_->process(), process);
  expect_still_working();
}

TEST_F(EvaluatorTest, WritesOutsideTheOutputAreRefused) {
  EXPECT_EQ(refused("outside"), "candidate-wrote-input");
  EXPECT_EQ(refused("before"), "candidate-wrote-input");
  expect_still_working();
}

TEST_F(EvaluatorTest, AChangedInputIsRefusedAndDoesNotLast) {
  EXPECT_EQ(refused("input"), "candidate-wrote-input");
  expect_still_working();
}

TEST_F(EvaluatorTest, ACrashIsRefusedAndTheEvaluatorLivesOn) {
  expect_still_working();
  const int process = evaluator_->process();
  EXPECT_EQ(refused("crash"), "candidate-crashed");
  expect_still_working();
  EXPECT_EQ(refused("throw"), "candidate-crashed");
  expect_still_working();
  EXPECT_EQ(evaluator_->process(), process);
}

TEST_F(EvaluatorTest, AHangIsKilledInTime) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(refused("hang"), "candidate-hung");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  expect_still_working();
}

TEST_F(EvaluatorTest, FarSlowerThanTheBestSoFarIsJudgedNoFurther) {
  expect_still_working();
  Request slow = request("crawl");
  slow.candidate_limit_ms = 60'000;
  const auto alone = evaluator_->judge(slow);
  ASSERT_TRUE(alone) << describe(alone.error());
  EXPECT_TRUE(alone->accepted);
  slow.best_us = 5;
  const auto beside = evaluator_->judge(slow);
  ASSERT_TRUE(beside) << describe(beside.error());
  EXPECT_EQ(beside->error_found.code, ErrorCode::kCandidateSlow);
}

TEST_F(EvaluatorTest, WhatAKernelMayNotAskForIsRefusedBeforeItRuns) {
  expect_still_working();
  const int process = evaluator_->process();
  for (const char* body : {"memory", "prints", "counts", "thread_local", "constructor"})
    EXPECT_EQ(refused(body), "candidate-forbidden") << body;
  EXPECT_EQ(evaluator_->process(), process);
  expect_still_working();
}

TEST_F(EvaluatorTest, WhatKeepsSomethingFromCallToCallIsRefused) {
  expect_still_working();
  const auto code_of = [&](const char* body) {
    Request foreign = request(body);
    foreign.foreign = true;
    const auto verdict = evaluator_->judge(foreign);
    EXPECT_TRUE(verdict && !verdict->accepted) << body;
    return std::string(verdict ? code_text(verdict->error_found.code) : "");
  };
  EXPECT_EQ(code_of("counts_stack"), "candidate-keeps-state");
  // Some calls find ordinary numbers where the output will be; in a chain there is an earlier one.
  const std::string stale = code_of("stale");
  EXPECT_TRUE(stale == "candidate-wrong" || stale == "candidate-keeps-state") << stale;
}

TEST_F(EvaluatorTest, AnOutputThatDiffersFromRunToRunIsUnstableUnlessItsSumsAreDeclaredAtomic) {
  EXPECT_EQ(refused("unstable"), "candidate-unstable");
  Request declared = request("unstable");
  declared.list.kernels[0].args[2].atomic = true;
  const auto verdict = evaluator_->judge(declared);
  ASSERT_TRUE(verdict);
  EXPECT_TRUE(verdict->accepted) << describe(verdict->error_found);
}

TEST_F(EvaluatorTest, ForeignTextHasAProcessToItself) {
  expect_still_working();
  for (const bool foreign : {true, true, false}) {
    Request another = request("right");
    another.foreign = foreign;
    const auto verdict = evaluator_->judge(another);
    ASSERT_TRUE(verdict);
    EXPECT_TRUE(verdict->accepted) << describe(verdict->error_found);
    EXPECT_NE(verdict->sandbox.find("ptrace"), std::string::npos);
    EXPECT_EQ(verdict->path, foreign ? TimedBy::strict : TimedBy::series);
    // Short as it is, its time is a bound; on a busy machine it may take longer, and be a time.
    const bool is_short = verdict->median_us < 20;
    EXPECT_TRUE(!foreign || verdict->time_is_bound || !is_short) << verdict->median_us;
    EXPECT_FALSE(!foreign && verdict->time_is_bound);
  }
}

TEST_F(EvaluatorTest, ASystemCallEndsTheCandidate) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers make system calls of their own";
#endif
  if (::prctl(PR_GET_SECCOMP) < 0) GTEST_SKIP() << "this kernel has no seccomp";
  EXPECT_NE(judged("right").sandbox.find("seccomp"), std::string::npos);
  EXPECT_EQ(refused("system_call"), "candidate-forbidden");
  expect_still_working();
}

TEST_F(EvaluatorTest, AnEvaluatorThatIsKilledIsReplaced) {
  expect_still_working();
  const int first = evaluator_->process();
  ::kill(first, SIGKILL);
  expect_still_working();
  EXPECT_NE(evaluator_->process(), first);
}

TEST_F(EvaluatorTest, AnEvaluatorThatIsStoppedIsReplaced) {
  expect_still_working();
  const int first = evaluator_->process();
  const auto start = std::chrono::steady_clock::now();
  ::kill(first, SIGSTOP);
  expect_still_working();
  EXPECT_NE(evaluator_->process(), first);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST_F(EvaluatorTest, AFloorAboveTheTimeIsTooFast) {
  verify::Setup impossible = setup();
  impossible.floor_us = 1e9;
  auto evaluator = Evaluator::start(impossible);
  ASSERT_TRUE(evaluator);
  const auto verdict = evaluator->judge(request("right"));
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->error_found.code, ErrorCode::kCandidateTooFast);
}

TEST_F(EvaluatorTest, AReferenceIsTimedBesideTheCandidate) {
  verify::Setup with = setup();
  with.reference = vendor::match(with.graph, with.track);
  auto evaluator = Evaluator::start(with);
  ASSERT_TRUE(evaluator) << describe(evaluator.error());
  EXPECT_FALSE(evaluator->ready().reference.empty());
  EXPECT_GT(evaluator->ready().reference_us, 0);
  EXPECT_LT(evaluator->ready().reference_error, 1e-6);
  const auto verdict = evaluator->judge(request("right"));
  ASSERT_TRUE(verdict);
  ASSERT_TRUE(verdict->accepted) << describe(verdict->error_found);
  EXPECT_GE(verdict->samples, 1);
  EXPECT_TRUE(verdict->noise.watched);
  // On a busy machine the reference may be beyond belief; then there is a reason, and no figure.
  EXPECT_EQ(verdict->reference_us > 0, verdict->reference_dropped.empty());
  EXPECT_EQ(verdict->reference_us > 0, verdict->speedup.median > 0);
  EXPECT_LE(verdict->reference_low_us, verdict->reference_us);
  EXPECT_GE(verdict->reference_high_us, verdict->reference_us);
  EXPECT_LE(verdict->speedup.low, verdict->speedup.median);
  EXPECT_GE(verdict->speedup.high, verdict->speedup.median);
}

TEST_F(EvaluatorTest, AReferenceThatComputesSomethingElseIsDroppedWithTheReason) {
  verify::Setup with = setup();
  with.reference = vendor::match(with.graph, with.track);
  // Twice the product, in the library's call alone.
  with.reference->steps[0].after.push_back({.alpha = 2});
  auto evaluator = Evaluator::start(with);
  ASSERT_TRUE(evaluator) << describe(evaluator.error());
  const Ready& ready = evaluator->ready();
  EXPECT_TRUE(ready.reference.empty() || ready.reference == "plain") << ready.reference;
  const auto tells = [](const std::string& note) {
    return note.find("computes something else") != std::string::npos;
  };
  EXPECT_TRUE(ready.reference != "plain" || std::ranges::any_of(ready.reference_notes, tells) ||
              vendor::dnnl_library(vendor::Layouts::rows, {}) == nullptr);
}

TEST_F(EvaluatorTest, AnInterruptEndsAJudgementAtOnce) {
  std::atomic<bool> interrupted{false};
  auto evaluator = Evaluator::start(setup(), {.interrupted = &interrupted});
  ASSERT_TRUE(evaluator);
  std::jthread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(800));
    interrupted = true;
  });
  Request hanging = request("hang");
  hanging.candidate_limit_ms = 60'000;
  const auto start = std::chrono::steady_clock::now();
  const auto verdict = evaluator->judge(hanging);
  ASSERT_FALSE(verdict);
  EXPECT_EQ(verdict.error().code, ErrorCode::kInterrupted);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST_F(EvaluatorTest, AProgramThatIsNoEvaluatorIsLost) {
  const auto evaluator = Evaluator::start(setup(), {.program = "/bin/true"});
  ASSERT_FALSE(evaluator);
  EXPECT_EQ(evaluator.error().code, ErrorCode::kEvaluatorLost);
}

TEST(Setup, TravelsWhole) {
  verify::Setup before = setup();
  before.graph.tensor(0).constant = std::vector<std::byte>(37 * 29 * 4, std::byte{0x5a});
  before.graph.nodes[0].attributes["alpha"] = 1.0;
  before.track = Track::tf32;
  before.seed = ~uint64_t{0};
  const auto after =
      setup_from_json(nlohmann::json::from_cbor(nlohmann::json::to_cbor(to_json(before))));
  ASSERT_TRUE(after);
  EXPECT_EQ(graph::to_text(after->graph), graph::to_text(before.graph));
  EXPECT_EQ(after->graph.tensor(0).constant, before.graph.tensor(0).constant);
  EXPECT_EQ(after->graph.nodes[0].attributes, before.graph.nodes[0].attributes);
  EXPECT_EQ(after->track, Track::tf32);
  EXPECT_EQ(after->seed, ~uint64_t{0});
}

TEST(Verdict, WhatIsNotKnownIsNullInItsJson) {
  Verdict alone;
  alone.accepted = true;
  alone.median_us = 7;
  alone.evidence = {{}};  // of a family of which nothing was checked
  const nlohmann::json said = to_json(alone);
  EXPECT_EQ(said["median_us"], 7);
  for (const char* key : {"low_us", "reference_us", "reference_error", "reference_dropped",
                          "speedup", "speedup_interval", "machine", "floor_us"})
    EXPECT_TRUE(said.at(key).is_null()) << key << " " << said[key];
  for (const char* key : {"error", "reference_error"})
    EXPECT_TRUE(said["evidence"][0].at(key).is_null()) << key;
  const auto after = verdict_from_json(said);
  ASSERT_TRUE(after) << describe(after.error());
  EXPECT_EQ(after->reference_us, 0);
  EXPECT_EQ(after->reference_error, -1);
  EXPECT_FALSE(after->noise.watched);
}

TEST(Verdict, JsonKeepsThePairAndItsInterval) {
  Verdict before;
  before.speedup = {1.31, 1.26, 1.36, 30};
  before.samples = 30;
  before.noise = {.watched = true, .cores = 2, .run_delay = 0.31};
  const auto after = verdict_from_json(to_json(before));
  ASSERT_TRUE(after);
  EXPECT_EQ(after->speedup.median, 1.31);
  EXPECT_EQ(after->speedup.low, 1.26);
  EXPECT_EQ(after->speedup.high, 1.36);
  EXPECT_EQ(after->speedup.pairs, 30);
  EXPECT_TRUE(after->noise.busy());
}

TEST(Verdict, JsonKeepsItAll) {
  Verdict before;
  before.error_found = {ErrorCode::kCandidateHung, "m", "p", "e", "f", "r"};
  before.error = HUGE_VAL;
  before.evidence.push_back({InputFamily::signs, 5, 1e-7, 2e-7, 3e-7, 0.5, -1, 3, 4});
  const auto after =
      verdict_from_json(nlohmann::json::from_cbor(nlohmann::json::to_cbor(to_json(before))));
  ASSERT_TRUE(after);
  EXPECT_EQ(after->error_found.code, ErrorCode::kCandidateHung);
  EXPECT_EQ(after->error_found.found, "f");
  EXPECT_EQ(after->error, HUGE_VAL);
  ASSERT_EQ(after->evidence.size(), 1u);
  EXPECT_EQ(after->evidence[0].family, InputFamily::signs);
}

// Where there is no GPU to open ahead, it serves all the same.
TEST_F(EvaluatorTest, AProcessThatWaitedForItsProblemServesIt) {
  EvaluatorProcess waited;
  ASSERT_TRUE(waited.start("/proc/self/exe", true));
  waited.peer.channel->send(to_json(setup()));
  const auto answer = waited.peer.channel->receive(60'000);
  ASSERT_TRUE(answer);
  EXPECT_TRUE(answer->contains("ready")) << *answer;
}

TEST_F(EvaluatorTest, APoolGivesEachOfItsProcessesOnce) {
  EvaluatorPool pool(2);
  const auto first = pool.take();
  const auto second = pool.take();
  ASSERT_TRUE(first && second);
  EXPECT_NE(first->peer.process, second->peer.process);
  EXPECT_FALSE(pool.take());
}

TEST_F(EvaluatorTest, AProblemOfTheCpuTakesNoProcessThatOpenedAGpu) {
  EvaluatorPool pool(1);
  ASSERT_TRUE(Evaluator::start(setup(), {.pool = &pool}));
  EXPECT_TRUE(pool.take());
}
}  // namespace
}  // namespace warploom::verify
