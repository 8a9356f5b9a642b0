// Kills: a search that is ended by SIGKILL at random moments, again and again, and started anew
// each time, loses nothing that it had recorded and ends as one that nobody touched. Verdicts and
// times are those of a first search, in which they were live.
//
//   WARPLOOM_KILLS=200 WARPLOOM_KILLS_OUT=bench/results/faults/kills_replayed.json
//   build/release/test_search --gtest_filter='Kills.*'
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>
#include "archive/archive.h"
#include "base/error.h"
#include "base/file.h"
#include "base/random.h"
#include "fake_family.h"
#include "kernels/config/kernel_config.h"
#include "search/options.h"
#include "search/strategy/strategy.h"
#include "search/task.h"
#include "search/tuning_session.h"
#include "verify/evaluator.h"

namespace warploom::search {
namespace {
namespace fs = std::filesystem;
using nlohmann::json;
using std::chrono::steady_clock;

constexpr int kCandidates = 36;

// Verdicts by schedule and by how strictly they were judged.
using Recording = std::map<std::string, verify::Verdict>;

std::string question(const kernels::KernelConfig& schedule, const verify::Request& request) {
  return fmt::format("{}{}{}", schedule.text(), request.beside_reference ? ", finalist" : "",
                     request.whole ? ", whole" : "");
}

struct Ending {
  std::string schedule;
  double best_us = 0;
  bool operator==(const Ending&) const = default;
};

// What a search in a child process has told before it ended: schedules as they were asked for, and
// how many were acknowledged.
struct Told {
  std::vector<std::string> asked;
  size_t acknowledged = 0;
  std::optional<Ending> ending;
};

class Kills : public testing::Test {
 protected:
  void SetUp() override { ::setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1); }

  ScratchFolder folder_{"kills"};
  const FakeFamily family_{{"right", "slow", "wrong_tail", "zeros"}, 40};

  Task task() const { return task_of(family_); }

  Options options(uint64_t seed, const std::string& archive) const {
    Options out;
    out.strategy = Strategy::beam;
    out.seed = seed;
    out.jobs = 2;
    out.max_candidates = kCandidates;
    out.archive = folder_.path() / archive;
    return out;
  }

  static std::vector<archive::Candidate> rows(const Options& options) {
    auto archive = archive::Archive::open(options.archive);
    EXPECT_TRUE(archive) << describe(archive.error());
    const auto problems = archive->problems();
    if (!problems || problems->empty()) return {};
    return *archive->candidates(problems->front().key);
  }

  static std::optional<Ending> done(const Options& options) {
    auto archive = *archive::Archive::open(options.archive);
    const auto problems = archive.problems();
    if (!problems || problems->empty()) return std::nullopt;
    const auto runs = archive.runs(problems->front().key);
    if (!runs || runs->empty() || runs->back().status != "done") return std::nullopt;
    return Ending{runs->back().best, (*archive.best(problems->front().key))->median_us.value_or(0)};
  }

  // Nobody touches this one. Its verdicts are live, and are kept in `recording`.
  Ending untouched(const Options& options, Recording& recording,
                   std::vector<std::string>& asked) const {
    Task live = task();
    auto evaluator = verify::Evaluator::start(live.setup);
    EXPECT_TRUE(evaluator);
    live.recorded = [&](const kernels::KernelConfig& schedule,
                        const verify::Request& request) -> Result<verify::Verdict> {
      WARPLOOM_TRY(verify::Verdict verdict, evaluator->judge(request));
      if (!request.beside_reference) asked.push_back(schedule.text());
      return recording.emplace(question(schedule, request), std::move(verdict)).first->second;
    };
    const auto outcome = tune(live, options);
    EXPECT_TRUE(outcome) << describe(outcome.error());
    return {outcome->schedule.text(), outcome->verdict.median_us};
  }

  // One life of a search, at most so long, then SIGKILL to it and its group.
  Told life(const Options& given, const Recording& recording,
            std::chrono::microseconds length) const {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const pid_t child = ::fork();
    if (child == 0) live(given, recording, ends[1]);
    ::close(ends[1]);
    const int status = status_of(child, length);
    EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0) << WEXITSTATUS(status);
    return told_by(ends[0]);
  }

 private:
  static void tell(int end, const std::string& line) {
    (void)!::write(end, (line + "\n").data(), line.size() + 1);
  }

  // A search in the child, with the verdicts of the recording, told line by line.
  [[noreturn]] void live(const Options& given, const Recording& recording, int end) const {
    ::setsid();
    Task replayed = task();
    replayed.recorded = [&](const kernels::KernelConfig& schedule,
                            const verify::Request& request) -> Result<verify::Verdict> {
      if (!request.beside_reference) tell(end, "?" + schedule.text());
      ::usleep(4'000);
      const auto known = recording.find(question(schedule, request));
      if (known == recording.end()) {
        // a candidate that the untouched search did not try
        tell(end, "no " + question(schedule, request));
        ::_exit(1);
      }
      return known->second;
    };
    Options running = given;
    running.on_progress = [&](const Progress& progress) {
      tell(end, "!" + std::to_string(progress.candidates));
    };
    const auto outcome = tune(replayed, running);
    if (!outcome) ::_exit(2);
    tell(end, "=" + json{outcome->schedule.text(), outcome->verdict.median_us}.dump());
    ::_exit(0);
  }

  // How the child ended, at the latest after that long.
  static int status_of(pid_t child, std::chrono::microseconds length) {
    const auto until = steady_clock::now() + length;
    int status = 0;
    while (::waitpid(child, &status, WNOHANG) == 0) {
      if (steady_clock::now() < until) {
        ::usleep(500);
        continue;
      }
      ::kill(-child, SIGKILL);
      ::kill(child, SIGKILL);
    }
    return status;
  }

  static Told told_by(int end) {
    std::string text;
    std::array<char, 4096> piece;
    for (ssize_t got = 0; (got = ::read(end, piece.data(), piece.size())) > 0;)
      text.append(piece.data(), static_cast<size_t>(got));
    ::close(end);
    Told told;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (line[0] == '?') told.asked.push_back(line.substr(1));
      if (line[0] == '!') told.acknowledged = static_cast<size_t>(std::stoi(line.substr(1)));
      if (line[0] == 'n') ADD_FAILURE() << line;
      if (line[0] != '=') continue;
      const json ended = json::parse(line.substr(1));
      told.ending = Ending{ended[0], ended[1]};
    }
    return told;
  }
};

// What became of the searches that were killed.
struct Counts {
  int kills = 0;
  int searches = 0;
  int verdicts = 0;
  int begun_again = 0;
  int in_final_rounds = 0;
  int lost = 0;
  int doubled = 0;
  int worse = 0;
  int out_of_order = 0;
  int unlike = 0;

  int faults() const { return lost + doubled + worse + out_of_order + unlike; }

  json figures() const {
    return {{"kills", kills},
            {"kills_in_final_rounds", in_final_rounds},
            {"searches", searches},
            {"verdicts", verdicts},
            {"begun_and_judged_again", begun_again},
            {"acknowledged_and_lost", lost},
            {"acknowledged_and_judged_again", doubled},
            {"best_became_worse", worse},
            {"candidates_out_of_order", out_of_order},
            {"results_unlike_the_untouched", unlike}};
  }
};

// How many of the rows, which are as many, are not the same.
int differing(const std::vector<archive::Candidate>& some,
              const std::vector<archive::Candidate>& others) {
  const auto what = [](const archive::Candidate& row) {
    return std::tuple(row.schedule, row.stage, row.error_code, row.median_us, row.parents);
  };
  int count = 0;
  for (size_t i = 0; i < some.size(); ++i)
    count += what(some[i]) != what(others[i]);
  return count;
}

TEST_F(Kills, LoseNothingAndChangeNothing) {
  const char* const wanted = std::getenv("WARPLOOM_KILLS");
  const int most = wanted ? std::atoi(wanted) : 20;
  Random random(7, "kills");
  Counts counts;
  for (uint64_t seed = 1; counts.kills < most; ++seed, ++counts.searches) {
    Recording recording;
    std::vector<std::string> sequence;
    const Options alone = options(seed, fmt::format("alone-{}.sqlite", seed));
    const Options killed = options(seed, fmt::format("killed-{}.sqlite", seed));
    const Ending ending = untouched(alone, recording, sequence);
    ASSERT_EQ(sequence.size(), static_cast<size_t>(kCandidates));

    std::vector<std::string> seen;  // acknowledged, in order
    double best_us = HUGE_VAL;
    std::optional<Ending> found;
    while (!found) {
      const bool enough = counts.kills >= most;
      const Told told =
          life(killed, recording,
               std::chrono::microseconds(enough ? 60'000'000 : 20'000 + random.below(130'000)));
      // A kill that comes after the last record is a kill all the same: that search is done.
      found = told.ending ? told.ending : done(killed);
      if (!told.ending) {
        ASSERT_FALSE(enough) << "a search that nobody killed did not end";
        ++counts.kills;
      }
      ASSERT_LE(told.acknowledged, told.asked.size());
      // What was begun and not acknowledged may be judged again. The order is that of the untouched
      // search.
      const size_t before = seen.size();
      for (size_t i = 0; i < told.asked.size(); ++i) {
        counts.doubled += std::ranges::count(seen, told.asked[i]) > 0;
        counts.out_of_order +=
            before + i >= sequence.size() || told.asked[i] != sequence[before + i];
      }
      // The kill may have come between the record and its acknowledgement.
      const auto kept = rows(killed);
      counts.begun_again += static_cast<int>(before + told.asked.size() - kept.size());
      seen.insert(seen.end(), told.asked.begin(),
                  told.asked.begin() + static_cast<ptrdiff_t>(told.acknowledged));
      for (const std::string& schedule : seen) {
        const auto row = std::ranges::find(kept, schedule, &archive::Candidate::schedule);
        counts.lost += row == kept.end() ||
                       (row->stage == archive::Stage::refused) == recording.at(schedule).accepted;
      }
      seen.clear();
      double best_now = HUGE_VAL;
      for (const auto& row : kept) {
        seen.push_back(row.schedule);
        if (const auto& first = recording.at(row.schedule); first.accepted)
          best_now = std::min(best_now, first.median_us);
      }
      counts.in_final_rounds += !told.ending && kept.size() == kCandidates;
      counts.worse += best_now > best_us;
      best_us = best_now;
    }
    counts.verdicts += static_cast<int>(seen.size());
    counts.unlike += *found != ending;
    const auto expected = rows(alone);
    const auto kept = rows(killed);
    ASSERT_EQ(kept.size(), expected.size());
    counts.unlike += differing(kept, expected);
  }
  const json figures = counts.figures();
  EXPECT_EQ(counts.faults(), 0) << figures.dump(1);
  EXPECT_GE(counts.kills, most);
  if (const char* const out = std::getenv("WARPLOOM_KILLS_OUT")) {
    ASSERT_TRUE(write_file(out, figures.dump(1) + "\n"));
  }
  RecordProperty("figures", figures.dump());
}
}  // namespace
}  // namespace warploom::search
