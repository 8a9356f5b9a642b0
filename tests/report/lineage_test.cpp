// What became of what in a search, which actions paid, and its course by rounds.
#include "report/lineage.h"
#include <gtest/gtest.h>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>
#include "archive/archive.h"
#include "base/file.h"
#include "report/history.h"
#include "report/rounds.h"

namespace warploom::report {
namespace {
using nlohmann::json;

json action(const std::string& kind, const std::string& field, int from, int to) {
  json out = {{"kind", kind}, {"sentence", field + " is " + std::to_string(to)}};
  out["settings"] = {{{"field", field}, {"from", from}, {"to", to}}};
  return out;
}

json candidate(int n, double us, const std::string& parent = "", const json& step = {}) {
  json out = {{"n", n}, {"schedule", "f n=" + std::to_string(n)}, {"stage", "screened"}};
  out["parents"] = json::array();
  if (!parent.empty()) out["parents"].push_back(parent);
  out["action"] = step;
  out["error_code"] = us > 0 ? "" : "candidate-wrong";
  out["median_us"] = us > 0 ? json(us) : json();
  return out;
}

// Two starts; of the first one two children and a grandchild.
json searched() {
  json out = json::array();
  out.push_back(candidate(1, 100));
  out.push_back(candidate(2, 400));
  out.push_back(candidate(3, 50, "f n=1", action("tiling", "tile", 4, 8)));
  out.push_back(candidate(4, 0, "f n=1", action("pipelining", "stages", 2, 3)));
  out.push_back(candidate(5, 25, "f n=3", action("tiling", "tile", 8, 16)));
  return out;
}

std::vector<std::string> steps_of(const LineageTable& lineage) {
  std::vector<std::string> out;
  for (const json& row : lineage.rows)
    out.push_back(row["step"]);
  return out;
}

TEST(Lineage, ChildrenStandBeneathTheirParentTheFastestFirst) {
  EXPECT_EQ(steps_of(lineage_of(searched(), nullptr)),
            (std::vector<std::string>{"#1", "· #3", "· · #5", "· #4", "#2"}));
}

TEST(Lineage, AStepSaysIdeaDifferenceVerdictAndWhatItGained) {
  const LineageTable lineage = lineage_of(searched(), 12.5);
  const json& start = lineage.rows[0];
  EXPECT_EQ(start["idea"], "began with f n=1");
  EXPECT_EQ(start["difference"], "");
  EXPECT_TRUE(start["of_parent"].is_null());
  const json& step = lineage.rows[2];
  EXPECT_EQ(step["idea"], "tile is 16");
  EXPECT_EQ(step["difference"], "tile 8 → 16");
  EXPECT_EQ(step["of_parent"], 0.5);
  EXPECT_EQ(step["part"], 0.5);
  const json& refused = lineage.rows[3];
  EXPECT_EQ(refused["verdict"], "candidate-wrong");
  EXPECT_TRUE(refused["of_parent"].is_null());
}

TEST(Lineage, AStepOfAWholePlanSaysItsStepsAsTheDifference) {
  EXPECT_EQ(difference_of({{"plan_steps", {"sum_before y", "cut_region t3"}}}),
            "sum_before y, cut_region t3");
  EXPECT_EQ(difference_of({{"plan_steps", {1, "cut_region t3"}}}), "cut_region t3");
}

TEST(Lineage, WhoseParentIsNotThereOrComesLaterIsARoot) {
  json all = json::array();
  all.push_back(candidate(1, 10, "f n=2", action("tiling", "tile", 1, 2)));
  all.push_back(candidate(2, 10, "f n=1", action("tiling", "tile", 2, 1)));
  all.push_back(candidate(3, 10, "lost", action("tiling", "tile", 2, 1)));
  EXPECT_EQ(steps_of(lineage_of(all, nullptr)), (std::vector<std::string>{"#1", "· #2", "#3"}));
}

TEST(Lineage, OfManyTheFastestAreShownWithWhatLedToThem) {
  json all = json::array();
  all.push_back(candidate(1, 1e6));
  for (int n = 2; n <= 1000; ++n)
    all.push_back(candidate(n, 2000 - n, "f n=1", action("tiling", "tile", 1, n)));
  const LineageTable lineage = lineage_of(all, nullptr);
  EXPECT_EQ(lineage.rows.size(), 101u);
  EXPECT_EQ(lineage.left_out, 899u);
  EXPECT_EQ(lineage.rows[0]["step"], "#1");
  EXPECT_EQ(lineage.rows[1]["step"], "· #1000");
}

TEST(Lineage, RecordsThatAreNoneAreNoRows) {
  EXPECT_TRUE(lineage_of(nullptr, nullptr).rows.empty());
  EXPECT_TRUE(paid_by("text").empty());
  EXPECT_EQ(difference_of(7), "");
  EXPECT_EQ(difference_of({{"settings", {1, "x", {{"field", "f"}, {"from", {1}}, {"to", 2}}}}}),
            "");
}

TEST(Paid, KindsAreCountedAndTheMostGainedComesFirst) {
  const json paid = paid_by(searched());
  ASSERT_EQ(paid.size(), 2u);
  EXPECT_EQ(paid[0]["kind"], "tiling");
  EXPECT_EQ(paid[0]["tried"], 2);
  EXPECT_EQ(paid[0]["faster"], 2);
  EXPECT_EQ(paid[0]["median_gain"], 2.0);
  EXPECT_EQ(paid[0]["best_gain"], 2.0);
  EXPECT_EQ(paid[1]["kind"], "pipelining");
  EXPECT_EQ(paid[1]["refused"], 1);
  EXPECT_TRUE(paid[1]["median_gain"].is_null());
}

json in_round(json candidate, int round) {
  candidate["proposed"] = {{"strategy", "branch"}, {"round", round}};
  return candidate;
}

TEST(Rounds, EachHasItsFastestAndTheBestSoFar) {
  json history;
  history["candidates"] = {in_round(candidate(1, 100), 0), in_round(candidate(2, 40), 1),
                           in_round(candidate(3, 50), 1), in_round(candidate(4, 70), 2),
                           in_round(candidate(5, 0), 3)};
  const Rounds rounds = rounds_of(history);
  EXPECT_FALSE(rounds.are_candidates);
  ASSERT_EQ(rounds.rounds.size(), 4u);
  EXPECT_EQ(rounds.rounds[1].own_us, 40.0);
  EXPECT_EQ(rounds.rounds[1].candidates, 2);
  EXPECT_EQ(rounds.rounds[2].own_us, 70.0);
  EXPECT_EQ(rounds.rounds[2].best_us, 40.0);
  EXPECT_FALSE(rounds.rounds[3].own_us);
  const std::string picture = rounds_picture(history);
  EXPECT_NE(picture.find("Best by round"), std::string::npos);
  EXPECT_NE(picture.find("promoted"), std::string::npos) << "no round's fastest is ringed";
}

TEST(Rounds, WhereThereAreNoneCandidatesAreCounted) {
  json history;
  history["candidates"] = searched();
  const Rounds rounds = rounds_of(history);
  EXPECT_TRUE(rounds.are_candidates);
  EXPECT_EQ(rounds.rounds.size(), 5u);
  EXPECT_EQ(rounds.rounds[4].best_us, 25.0);
  EXPECT_NE(rounds_picture(history).find("Best by candidate"), std::string::npos);
}

size_t count_of(const std::string& text, const std::string& part) {
  size_t out = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1))
    ++out;
  return out;
}

// Marks of round 1: two, of which the fastest is ringed; what was refused has none.
TEST(Rounds, ThePictureHasAMarkACandidateAndRingsOneOfEachRound) {
  json history;
  history["candidates"] = {in_round(candidate(1, 100), 0), in_round(candidate(2, 40), 1),
                           in_round(candidate(3, 50), 1), in_round(candidate(4, 0), 1),
                           in_round(candidate(5, 70), 2)};
  history["candidates"][4]["action"] = action("tiling", "tile", 1, 16);
  const std::string picture = rounds_picture(history);
  EXPECT_EQ(count_of(picture, "promoted"), 3u) << picture;
  EXPECT_EQ(count_of(picture, "screened"), 1u);
  EXPECT_NE(picture.find("tile is 16"), std::string::npos) << "the idea of a step";
  EXPECT_NE(picture.find("f n=1"), std::string::npos) << "the schedule of a start";
  EXPECT_EQ(picture.find("f n=4"), std::string::npos);
  EXPECT_EQ(count_of(picture, "reference"), 0u);
}

TEST(Rounds, ThePictureWithoutRoundsRingsNothing) {
  json history;
  history["candidates"] = searched();
  history["reference_us"] = 60;
  const std::string picture = rounds_picture(history);
  EXPECT_EQ(count_of(picture, "promoted"), 0u);
  EXPECT_EQ(count_of(picture, "screened"), 4u);
  EXPECT_EQ(count_of(picture, "reference"), 1u);
}

// The line goes level to the next round, then down to what is the best there.
TEST(Rounds, TheLineIsTheBestSoFar) {
  const auto line_of = [](const std::vector<double>& times) {
    json history;
    history["candidates"] = json::array();
    for (const double us : times) {
      const int number = static_cast<int>(history["candidates"].size());
      history["candidates"].push_back(in_round(candidate(number + 1, us), number));
    }
    const std::string picture = rounds_picture(history);
    const size_t begin = picture.find("points=\"", picture.find("so-far")) + 8;
    return picture.substr(begin, picture.find('"', begin) - begin);
  };
  const std::string falling = line_of({100, 50, 25});
  EXPECT_EQ(count_of(falling, ","), 5u) << falling;
  std::vector<double> heights;
  for (size_t at = falling.find(','); at != falling.npos; at = falling.find(',', at + 1))
    heights.push_back(std::stod(falling.substr(at + 1)));
  EXPECT_EQ(heights[0], heights[1]);
  EXPECT_LT(heights[1], heights[2]);
  EXPECT_EQ(heights[2], heights[3]);
  EXPECT_LT(heights[3], heights[4]);
}

TEST(Rounds, WhereNothingIsRightThereIsNoPicture) {
  json history;
  history["candidates"] = {candidate(1, 0)};
  EXPECT_EQ(rounds_picture(history), "");
}

TEST(HistoryOfASearch, HasItsTreeItsActionsItsStartsAndWhatTheModelCost) {
  const ScratchFolder folder("lineage-test");
  archive::Archive archive = *archive::Archive::open(folder.path() / "a.sqlite");
  archive::Problem problem{std::string(32, 'a'), "mm", "fp32", "cpu", "a CPU", ""};
  problem.graph = {{"secret", 1}};
  ASSERT_TRUE(archive.add_problem(problem));
  ASSERT_TRUE(archive.record({.problem = problem.key,
                              .schedule = "f n=1",
                              .fields = json::object(),
                              .stage = archive::Stage::screened,
                              .median_us = 10}));
  ASSERT_TRUE(archive.record({.problem = problem.key,
                              .schedule = "f n=2",
                              .fields = json::object(),
                              .parents = {"f n=1"},
                              .action = action("tiling", "tile", 1, 2),
                              .proposed = {{"round", 1}, {"chance", 0.25}, {"policy", "learned"}},
                              .stage = archive::Stage::screened,
                              .median_us = 5}));
  archive::Run run{.problem = problem.key};
  run.near = {{{"schedule", "f n=1"}, {"name", "another"}, {"device", "a GPU"}, {"distance", 0.1}}};
  ASSERT_TRUE(archive.begin_run(run));
  ASSERT_TRUE(archive.add_exchange(problem.key, {{"purpose", "faster"},
                                                 {"model", "m"},
                                                 {"prompt_tokens", 1000},
                                                 {"answer_tokens", 500},
                                                 {"money", 0.02},
                                                 {"seconds", 3},
                                                 {"answer", "a long text"}}));
  const auto history = history_of(archive, problem);
  ASSERT_TRUE(history);
  const json& tables = (*history)["tables"];
  EXPECT_NE(tables["steps"].get<std::string>().find("tile 1 → 2"), std::string::npos);
  EXPECT_NE(tables["steps"].get<std::string>().find("25 %"), std::string::npos);
  EXPECT_NE(tables["paid"].get<std::string>().find("tiling"), std::string::npos);
  EXPECT_NE(tables["near"].get<std::string>().find("another"), std::string::npos);
  EXPECT_NE(tables["exchanges"].get<std::string>().find("faster"), std::string::npos);
  EXPECT_NE((*history)["model_cost"].get<std::string>().find("1500 tokens"), std::string::npos);
  EXPECT_EQ(history->dump().find("a long text"), std::string::npos);
  EXPECT_EQ(history->dump().find("secret"), std::string::npos);
}
}  // namespace
}  // namespace warploom::report
