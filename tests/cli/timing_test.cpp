// The table, verify, bench, run and a bundle's own check time the same kernels in the same way: on
// a quiet machine their figures agree within their intervals. On a busy one they say that it is
// busy, and then nothing is asked of them.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <chrono>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>
#include "base/file.h"
#include "base/process.h"
#include "support/paths.h"

namespace warploom {
namespace {
using nlohmann::json;

constexpr int kRounds = 3;

// What one way of timing said: the time, and its ratio to the reference in the same run where it
// has one.
struct Figure {
  std::string by;
  double low_us = 0;
  double high_us = 0;
  double low_ratio = 0;
  double high_ratio = 0;
  bool quiet = false;
};

// Intervals hold the median with 95 % each; clocks of another process may differ by a little more.
bool overlap(double low, double high, double other_low, double other_high) {
  constexpr double kMore = 0.1;
  return low <= other_high * (1 + kMore) && other_low <= high * (1 + kMore);
}

class Timing : public testing::Test {
 protected:
  std::string shell(const std::string& line) {
    const std::string set_up = fmt::format("export XDG_CACHE_HOME='{0}/cache'; cd '{0}'; W='{1}'; ",
                                           scratch_.path().string(), test::built_path("warploom"));
    const auto ran = run_process({"bash", "-c", set_up + line},
                                 {.time = std::chrono::seconds(200), .output_bytes = 16 << 20});
    EXPECT_TRUE(ran && ran->succeeded()) << line << (ran ? ran->out + ran->err : "");
    return ran ? ran->out : "";
  }

  Figure judged(const std::string& by, const std::string& line) {
    const json said = json::parse(shell(line), nullptr, false);
    Figure figure{.by = by};
    if (!said.is_object()) return figure;
    figure.low_us = said["best_interval_us"][0];
    figure.high_us = said["best_interval_us"][1];
    if (said["speedup_interval"].is_array()) {
      figure.low_ratio = said["speedup_interval"][0];
      figure.high_ratio = said["speedup_interval"][1];
    }
    figure.quiet = said["machine"].is_object() && !said["machine"]["busy"];
    return figure;
  }

  Figure ran() {
    const json said = json::parse(shell("$W run made --out o --json"), nullptr, false);
    if (!said.is_object()) return {.by = "run"};
    return {.by = "run",
            .low_us = said["low_us"],
            .high_us = said["high_us"],
            .quiet = said["machine"].is_object() && !said["machine"]["busy"]};
  }

  Figure checked() {
    const std::string text = shell("make -C made check");
    std::smatch found;
    const std::regex time("time: median [0-9.]+ us, 95 % of medians ([0-9.]+) to ([0-9.]+) us");
    EXPECT_TRUE(std::regex_search(text, found, time)) << text;
    if (found.empty()) return {.by = "check"};
    return {.by = "check",
            .low_us = std::stod(found[1]),
            .high_us = std::stod(found[2]),
            .quiet = text.find("machine: busy") == text.npos};
  }

  ScratchFolder scratch_{"timing-test"};
};

TEST_F(Timing, TableVerifyBenchRunAndCheckAgreeOnAQuietMachine) {
  const std::string model = test::source_path("examples/matmul_small.textproto");
  std::vector<Figure> figures = {judged(
      "table", "$W optimize " + model + " --target cpu --candidates 2 --out made -q --json")};
  for (int round = 0; round < kRounds; ++round) {
    figures.push_back(judged("verify", "$W verify made/plan.json --json"));
    figures.push_back(judged("bench", "$W bench made --time 300ms --json"));
    figures.push_back(ran());
    figures.push_back(checked());
  }
  int compared = 0;
  for (const Figure& a : figures) {
    EXPECT_GT(a.low_us, 0) << a.by;
    for (const Figure& b : figures) {
      if (&a >= &b || !a.quiet || !b.quiet) continue;
      ++compared;
      EXPECT_TRUE(overlap(a.low_us, a.high_us, b.low_us, b.high_us))
          << fmt::format("{} {:.2f} to {:.2f} us, {} {:.2f} to {:.2f} us", a.by, a.low_us,
                         a.high_us, b.by, b.low_us, b.high_us);
      if (a.low_ratio <= 0 || b.low_ratio <= 0) continue;
      EXPECT_TRUE(overlap(a.low_ratio, a.high_ratio, b.low_ratio, b.high_ratio))
          << fmt::format("{} {:.3f} to {:.3f} times the reference's speed, {} {:.3f} to {:.3f}",
                         a.by, a.low_ratio, a.high_ratio, b.by, b.low_ratio, b.high_ratio);
    }
  }
  RecordProperty("pairs_on_a_quiet_machine", compared);
}
}  // namespace
}  // namespace warploom
