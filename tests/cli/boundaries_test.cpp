// Boundaries between the regions of a network, as programs see them: shown, walked, and in a
// bundle that has other ones than fusion's.
#include <gtest/gtest.h>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include "archive/archive.h"
#include "base/file.h"
#include "cli_fixture.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "onnx/load.h"
#include "plan/fusion.h"
#include "search/optimize.h"
#include "search/plan_archive.h"

namespace warploom::cli_test {
namespace {
class BoundariesCli : public Cli {
 protected:
  void SetUp() override {
    Cli::SetUp();
    ASSERT_EQ(
        shell("$W new 'softmax(gelu(matmul(x[24,32], w[32,32]) + b[32]))' --out net.onnx").status,
        0);
  }

  Ran show(const std::string& flags) {
    return shell("$W show net.onnx --target cpu --json " + flags);
  }

  // The first cut that can be made.
  std::string cut() {
    for (const json shown = show("--what boundaries").out; const json& one : shown["boundaries"])
      if (one["changes"][0]["kind"] == "cut_region" && one["refused"].is_null()) return one["name"];
    ADD_FAILURE() << "nothing can be cut";
    return "";
  }

  Ran search(const std::string& flags) {
    return shell("$W optimize net.onnx --target cpu --archive a.sqlite --out made --json " + flags);
  }

  // As if a search had ended with these boundaries.
  void end_with(const std::string& boundaries) {
    const Ran first = search("--candidates 1 --budget 20s");
    ASSERT_EQ(first.status, 0) << first.text << first.err;
    auto archive = archive::Archive::open(scratch.path() / "a.sqlite");
    ASSERT_TRUE(archive);
    archive::Run run = archive->runs(first.out["plans_key"])->front();
    const auto id = archive->begin_run(run);
    run.status = "done";
    run.best = boundaries;
    run.budget_seconds = 1000;
    ASSERT_TRUE(archive->finish_run(*id, run));
  }
};

TEST_F(BoundariesCli, AreShownWithWhatTheyGainOrTheRuleThatForbidsThem) {
  const Ran shown = show("--what boundaries");
  ASSERT_EQ(shown.status, 0) << shown.text << shown.err;
  size_t refused = 0;
  for (const json& one : shown.out["boundaries"]) {
    EXPECT_NE(one["sentence"], "");
    if (one["refused"].is_null()) continue;
    ++refused;
    EXPECT_NE(one["refused"]["rule"], "");
    EXPECT_NE(one["refused"]["expected"], "");
  }
  EXPECT_GT(refused, 0u);
  const size_t regions = show("--what regions").out["regions"].size();
  const Ran more = show("--what regions --boundaries '" + cut() + "'");
  EXPECT_EQ(more.out["regions"].size(), regions + 1) << more.text << more.err;
  expect_error(show("--what regions --boundaries 'cut_region nowhere'"), "schedule-illegal", 4);
  expect_error(show("--what regions --boundaries 'split x'"), "plan-invalid", 2);
  EXPECT_NE(shell("$W show net.onnx --target cpu --what boundaries").text.find("cut_region"),
            std::string::npos);
}

TEST_F(BoundariesCli, AWalkCutsAndJoinsThem) {
  const std::string name = cut();
  const Ran cut_shown = show("--what boundaries --boundaries '" + name + "'");
  const std::string between = name.substr(name.find(' ') + 1);
  std::string join;
  for (const json& one : cut_shown.out["boundaries"])
    if (one["changes"][0]["tensors"][0] == between && one["refused"].is_null()) join = one["name"];
  ASSERT_TRUE(join.starts_with("join_regions")) << cut_shown.text;
  const auto round = [](int number, const std::string& action) {
    return json{{"round", number}, {"idea", "an idea"}, {"actions", {action}}};
  };
  const json steps = {{"start", json::array()},
                      {"rounds", {round(1, name), round(2, "cut_region nowhere"), round(3, join)}}};
  ASSERT_TRUE(write_file(scratch.path() / "steps.json", steps.dump()));
  const Ran ran = shell("$W walk net.onnx --steps steps.json --target cpu --quiet --json --dry");
  ASSERT_EQ(ran.status, 0) << ran.text << ran.err;
  const json& rows = ran.out["rows"];
  const size_t fused = rows[0]["regions"].size();
  EXPECT_EQ(rows[1]["regions"].size(), fused + 1);
  EXPECT_EQ(rows[1]["actions"][0]["kind"], "fusion");
  EXPECT_EQ(rows[1]["actions"][0]["difference"], name);
  EXPECT_EQ(rows[2]["refused"]["code"], "schedule-illegal");
  EXPECT_EQ(rows[2]["regions"].size(), fused + 1);
  EXPECT_EQ(rows[3]["regions"], rows[0]["regions"]);
}

TEST_F(BoundariesCli, ABundleOfOtherOnesThanFusionsIsProvenShownAndFoundAgain) {
  const std::string name = cut();
  end_with(name);
  const Ran run = search("--budget 12s");
  ASSERT_EQ(run.status, 0) << run.text << run.err;
  EXPECT_EQ(run.out["boundaries"]["text"], name);
  EXPECT_EQ(run.out["regions"].size(), 3u) << run.text;
  const Ran check = shell("make -C made check");
  EXPECT_EQ(check.status, 0) << check.text << check.err;
  const Ran judged = shell("$W verify made --json");
  EXPECT_EQ(judged.status, 0) << judged.text << judged.err;
  const Ran report = shell("$W report made --archive a.sqlite --out page.html");
  EXPECT_EQ(report.status, 0) << report.text << report.err;
  const auto page = read_file(scratch.path() / "page.html");
  EXPECT_EQ(page->find("which this machine would make of its model"), std::string::npos);
  EXPECT_NE(page->find(name), std::string::npos);
  const Ran why = shell("$W why net.onnx --target cpu --archive a.sqlite --json");
  ASSERT_EQ(why.status, 0) << why.text << why.err;
  EXPECT_EQ(why.out["plan"]["schedule"], name);
  EXPECT_TRUE(why.out["plan"]["name"].get<std::string>().starts_with("plans of "));
  EXPECT_EQ(why.out["regions"].size(), 3u);
}

// What a program before this one would have left: the regions, and the network's partitions under a
// problem of the graph that is cut.
TEST_F(BoundariesCli, PartitionsOfAProgramBeforeThisOneAreTold) {
  const std::string schedule = "boundaries: " + cut();
  ASSERT_EQ(search("--candidates 1 --budget 20s").status, 0);
  archive::Archive from = *archive::Archive::open(scratch.path() / "a.sqlite");
  archive::Archive into = *archive::Archive::open(scratch.path() / "older.sqlite");
  archive::Problem network;
  const auto problems = *from.problems();
  for (const archive::Problem& problem : problems) {
    if (search::is_of_plans(problem)) {
      network = problem;
      continue;
    }
    ASSERT_TRUE(into.add_problem(problem));
    const auto candidates = *from.candidates(problem.key);
    for (const archive::Candidate& one : candidates)
      ASSERT_TRUE(into.record(one));
  }
  const auto given = load_onnx((scratch.path() / "net.onnx").string());
  ASSERT_TRUE(given);
  const auto capabilities = search::resolve_target("cpu");
  network.name = given->name;
  network.text = graph::to_text(*plan::lower_for_target(*given, *capabilities, Track::fp32, {}));
  ASSERT_TRUE(into.add_problem(network));
  ASSERT_TRUE(into.record({.problem = network.key,
                           .schedule = schedule,
                           .fields = json::object(),
                           .stage = archive::Stage::promoted,
                           .median_us = 9}));
  archive::Run run{.problem = network.key, .status = "done", .best = schedule};
  ASSERT_TRUE(into.begin_run(run));
  const std::string line = "$W why net.onnx --target cpu --archive older.sqlite --json";
  const Ran why = shell(line);
  ASSERT_EQ(why.status, 0) << why.text << why.err;
  EXPECT_EQ(why.out["plan"]["schedule"], schedule);
  EXPECT_EQ(why.out["plan"]["steps"].size(), 1u);
  EXPECT_EQ(shell(line + " --schedule '" + schedule + "'").out, why.out);
  expect_error(shell(line + " --schedule 'cut_region nowhere'"), "schedule-illegal", 4);
}

TEST_F(BoundariesCli, ASearchUnderOtherOnesThatWasKilledGoesOnUnderThem) {
  const std::string name = cut();
  end_with(name);
  shell(
      "timeout -s KILL 4 $W optimize net.onnx --target cpu --archive a.sqlite --out made "
      "--budget 10m");
  const Ran run = search("--budget 12s");
  ASSERT_EQ(run.status, 0) << run.text << run.err;
  EXPECT_EQ(run.out["boundaries"]["text"], name);
}
}  // namespace
}  // namespace warploom::cli_test
