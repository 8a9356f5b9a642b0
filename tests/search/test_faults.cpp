// What may befall a search from outside: its evaluator dies, its archive's disk is full or lies, it
// runs for very long.
//
//   WARPLOOM_EVALUATOR_KILLS=1000 WARPLOOM_EVALUATOR_KILLS_OUT=FILE build/release/test_search
//   --gtest_filter='Faults.AnEval*' WARPLOOM_SOAK=1000 WARPLOOM_SOAK_OUT=FILE
//   build/release/test_search --gtest_filter='Faults.Soak*'
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>
#include "archive/archive.h"
#include "base/error.h"
#include "base/file.h"
#include "base/random.h"
#include "children.h"
#include "fake_family.h"
#include "search/options.h"
#include "search/tuning_session.h"

namespace warploom::search {
namespace {
namespace fs = std::filesystem;
using nlohmann::json;
using std::chrono::steady_clock;

int times(const char* variable, int sample) {
  const char* const wanted = std::getenv(variable);
  return wanted ? std::atoi(wanted) : sample;
}

void keep_figures(const char* variable, const json& figures) {
  testing::Test::RecordProperty("figures", figures.dump());
  if (const char* const out = std::getenv(variable)) {
    ASSERT_TRUE(write_file(out, figures.dump(1) + "\n"));
  }
}

double seconds_since(steady_clock::time_point start) {
  return std::chrono::duration<double>(steady_clock::now() - start).count();
}

class Faults : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1);
    fs::create_directories(temporary_);
    ::setenv("TMPDIR", temporary_.c_str(), 1);
  }

  void TearDown() override {
    before_.empty() ? ::unsetenv("TMPDIR") : ::setenv("TMPDIR", before_.c_str(), 1);
  }

  ScratchFolder folder_{"faults"};
  fs::path temporary_ = folder_.path() / "temporary";
  std::string before_ = std::getenv("TMPDIR") ? std::getenv("TMPDIR") : "";

  Options options(int candidates) const {
    Options out;
    out.budget_seconds = 3600;
    out.max_candidates = candidates;
    out.archive = folder_.path() / "archive.sqlite";
    return out;
  }

  std::vector<archive::Candidate> recorded() const {
    auto opened = archive::Archive::open(folder_.path() / "archive.sqlite");
    return *opened->candidates(opened->problems()->front().key);
  }
};

TEST_F(Faults, AnEvaluatorKilledAtRandomMomentsCostsNoVerdictAndLittleTime) {
  const int kills = times("WARPLOOM_EVALUATOR_KILLS", 15);
  const FakeFamily family({"right"}, 4 * kills + 40);
  std::atomic<int> judged{0};
  std::atomic<bool> ended{false};
  std::vector<double> gaps;
  std::jthread killer([&] {
    Random random(3, "evaluator");
    while (static_cast<int>(gaps.size()) < kills && !ended) {
      std::this_thread::sleep_for(std::chrono::microseconds(random.below(60'000)));
      const int process = judged > 0 ? evaluator_process() : 0;
      if (process == 0) continue;
      const int before = judged;
      const auto start = steady_clock::now();
      ::kill(process, SIGKILL);
      // The first verdict may have been on its way already; the second is from a fresh process.
      while (judged < before + 2 && !ended)
        std::this_thread::sleep_for(std::chrono::microseconds(500));
      if (!ended) gaps.push_back(seconds_since(start));
    }
  });
  Options running = options(0);
  std::atomic<bool> enough{false};
  running.interrupted = &enough;
  running.on_progress = [&](const Progress& progress) {
    judged = progress.candidates;
    enough = static_cast<int>(gaps.size()) >= kills;
  };
  const auto outcome = tune(task_of(family), running);
  ended = true;
  killer.join();
  ASSERT_TRUE(outcome) << describe(outcome.error());
  EXPECT_EQ(outcome->refused, 0);
  EXPECT_EQ(static_cast<int>(recorded().size()), outcome->candidates);
  ASSERT_EQ(static_cast<int>(gaps.size()), kills);
  std::ranges::sort(gaps);
  const double median = gaps[gaps.size() / 2];
  const double longest = gaps.back();
  EXPECT_LT(median, 1);
  EXPECT_LT(longest, 10);  // several builds share the machine that tests run on
  keep_figures("WARPLOOM_EVALUATOR_KILLS_OUT",
               {{"kills", kills},
                {"candidates", outcome->candidates},
                {"verdicts_lost", outcome->candidates - static_cast<int>(recorded().size())},
                {"refused", outcome->refused},
                {"median_seconds_to_the_second_verdict", median},
                {"longest_seconds_to_the_second_verdict", longest}});
}

TEST_F(Faults, ADamagedArchiveNeverMakesAWrongKernelWin) {
  const FakeFamily family({"wrong_tail", "right", "zeros", "slow"}, 2);
  ASSERT_TRUE(tune(task_of(family), options(0)));
  const std::string whole = *read_file(folder_.path() / "archive.sqlite");
  Random random(4, "damage");
  int refused = 0;
  for (int i = 0; i < 25; ++i) {
    std::string damaged = whole;
    for (int flip = 0; flip < 3; ++flip)
      damaged[random.below(whole.size())] ^= static_cast<char>(1 << random.below(8));
    Options running = options(0);
    running.archive = folder_.path() / fmt::format("damaged-{}.sqlite", i);
    ASSERT_TRUE(write_file(running.archive, damaged));
    auto outcome = tune(task_of(family), running);
    // What no longer says that it is an archive may be anybody's file, and stays where it is.
    if (!outcome && outcome.error().code == ErrorCode::kArchiveForeign) {
      EXPECT_EQ(*read_file(running.archive), damaged);
      continue;
    }
    if (!outcome) {
      ++refused;
      EXPECT_EQ(outcome.error().code, ErrorCode::kArchiveDamaged) << describe(outcome.error());
      outcome = tune(task_of(family), running);  // it was moved aside
    }
    ASSERT_TRUE(outcome) << describe(outcome.error());
    EXPECT_EQ(outcome->schedule.as<FakeConfig>().body % 2, 1) << outcome->schedule.text();
  }
  EXPECT_GT(refused, 0);
}

// The largest growth of resident memory that is no growth. An evaluator grows with every image that
// it loads, until it is replaced after 500 candidates: a short search sees none of that.
constexpr double kMostGrowth = 0.05;
constexpr double kMostGrowthOfFew = 0.4;
constexpr double kPageCache = 2 << 20;  // SQLite's, which fills once

TEST_F(Faults, SoakGrowsNothingAndLeavesNothingBehind) {
  const int candidates = times("WARPLOOM_SOAK", 80);

  struct Sample {
    double search = 0;
    double evaluator = 0;
    int files = 0;
  };

  json figures = json::array();
  // Evaluators live through the first search; every fourth candidate of the second one ends its
  // evaluator.
  for (const std::string last : {"slow", "crash"}) {
    const FakeFamily family({"right", "wrong_tail", "no_compile", last}, candidates / 4 + 1);
    std::vector<Sample> samples;
    int zombies = 0;
    Options running = options(candidates);
    running.archive = folder_.path() / (last + ".sqlite");
    running.on_progress = [&](const Progress&) {
      if (static_cast<int>(samples.size()) == candidates)
        return;  // the last round's evaluator, which holds more inputs
      Sample now{resident(), 0, 0};
      for (const Child& child : children()) {
        if (child.evaluator) now.evaluator = resident(std::to_string(child.process));
        zombies += child.state == 'Z' && child.evaluator;
      }
      for ([[maybe_unused]] const auto& file : fs::directory_iterator("/proc/self/fd"))
        ++now.files;
      samples.push_back(now);
    };
    const auto outcome = tune(task_of(family), running);
    ASSERT_TRUE(outcome) << describe(outcome.error());
    ASSERT_GE(static_cast<int>(samples.size()), candidates);
    // The most in the second half of the search over the most in the first.
    const auto growth = [&](double Sample::* what) {
      const auto most = [&](size_t from, size_t to) {
        double out = 0;
        for (size_t i = from; i < to; ++i)
          out = std::max(out, samples[i].*what);
        return out;
      };
      return most(samples.size() / 2, samples.size()) / most(0, samples.size() / 2) - 1;
    };
    for (int i = 0; i < 100 && !children().empty(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    std::vector<std::string> left;
    for (const auto& entry : fs::directory_iterator(temporary_))
      left.push_back(entry.path().filename());
    const double more = samples.back().search * growth(&Sample::search);
    EXPECT_TRUE(growth(&Sample::search) < kMostGrowth || more < kPageCache) << more;
    if (last != "crash") {
      EXPECT_LT(growth(&Sample::evaluator), candidates < 1000 ? kMostGrowthOfFew : kMostGrowth);
    }
    EXPECT_LE(samples.back().files,
              samples[samples.size() / 5].files + 8);  // compilers come and go
    EXPECT_TRUE(children().empty());
    EXPECT_EQ(zombies, 0);
    EXPECT_TRUE(left.empty()) << fmt::format("{}", fmt::join(left, " "));
    figures.push_back(
        {{"every_fourth", last},
         {"candidates", outcome->candidates},
         {"search_megabytes", std::round(samples.back().search / 1e5) / 10},
         {"search_growth_megabytes", std::round(more / 1e5) / 10},
         {"search_growth", std::round(growth(&Sample::search) * 1e4) / 1e4},
         {"evaluator_growth",
          last == "crash" ? json() : json(std::round(growth(&Sample::evaluator) * 1e4) / 1e4)},
         {"zombies", zombies},
         {"children_left", children().size()},
         {"temporary_files_left", left.size()}});
  }
  keep_figures("WARPLOOM_SOAK_OUT", figures);
}
}  // namespace
}  // namespace warploom::search
