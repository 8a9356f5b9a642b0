// What to try next, from records alone.
#include "report/advice.h"
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>

namespace warploom::report {
namespace {
using nlohmann::json;

json candidate(int n, double us, double seconds) {
  return {{"n", n}, {"stage", "screened"}, {"median_us", us}, {"seconds", seconds}};
}

// A search of ten seconds that used its budget up; the best came after eight.
json history() {
  return {{"problem", {{"name", "mm"}}},
          {"candidates", {candidate(1, 20, 1), candidate(2, 10, 8), candidate(3, 12, 10)}},
          {"runs", {{{"seconds", 10.0}, {"budget_seconds", 10.0}, {"candidates", 30}}}},
          {"best", {{"median_us", 10}, {"low_us", 9.9}, {"high_us", 10.1}}},
          {"reference", "oneDNN"},
          {"reference_us", 15},
          {"refusals", json::array()}};
}

// The texts of the advice of this title; "" where it is not given.
std::string advised(const std::string& title, const json& of, const json& regions = json::array()) {
  std::string text;
  for (const json& one : advice_of(json(), json::array({of}), regions))
    if (one["title"] == title) text += one["texts"].dump();
  return text;
}

TEST(Advice, ABudgetThatWasTheLimitSaysHowManyCandidatesMoreTimeWouldJudge) {
  const std::string text = advised("A longer search is likely to find more", history());
  for (const char* part : {"30 candidates", "3 a second", "after 8.0 s", "about 300",
                           "<code>--resume --budget 100s</code>"})
    EXPECT_NE(text.find(part), text.npos) << part << text;
}

TEST(Advice, ABestThatCameEarlyPromisesLess) {
  json of = history();
  of["candidates"][0]["median_us"] = 5;
  EXPECT_EQ(advised("A longer search is likely to find more", of), "");
  EXPECT_NE(advised("The budget was the limit", of), "");
}

TEST(Advice, ASearchThatEndedItselfIsTold) {
  json of = history();
  of["runs"][0]["seconds"] = 3.0;
  EXPECT_NE(advised("The search ended before its budget did", of), "");
}

TEST(Advice, WhatIsNotKnownGivesNoAdvice) {
  json of = history();
  of["runs"][0]["budget_seconds"] = nullptr;
  of["reference_us"] = 0;
  of["best"]["low_us"] = -1;
  EXPECT_EQ(advised("The budget was the limit", of), "");
  EXPECT_EQ(advised("The best's time is known poorly", of), "");
  EXPECT_EQ(advised("Undecided against the reference", of), "");
  EXPECT_NE(advised("Nothing to compare with", of), "");
}

TEST(Advice, RefusalsOfOneCodeAreExplained) {
  json of = history();
  of["refusals"] = {{{"code", "candidate-wrong"}, {"count", 3}, {"meaning", "it differs"}}};
  EXPECT_NE(advised("Most candidates were refused for one reason", of).find("it differs"),
            std::string::npos);
  of["refusals"][0]["count"] = 1;
  EXPECT_EQ(advised("Most candidates were refused for one reason", of), "");
}

TEST(Advice, OverlappingIntervalsAreUndecided) {
  json of = history();
  of["best"].update({{"low_us", 8}, {"high_us", 16}});
  EXPECT_NE(advised("Undecided against the reference", of).find("quiet machine"),
            std::string::npos);
  EXPECT_NE(advised("The best's time is known poorly", of), "");
}

TEST(Advice, ABusyMachineAndAFasterReferenceAreSaid) {
  json of = history();
  of["best"]["machine"] = {{"busy", true}, {"text", "busy (load 4)"}};
  of["reference_us"] = 5;
  EXPECT_NE(advised("The machine was busy", of).find("busy (load 4)"), std::string::npos);
  EXPECT_NE(advised("The reference is faster", of), "");
}

TEST(Advice, ARegionFarFromItsBoundIsNamedWithIt) {
  const json region = {{"name", "MatMul"}, {"bound", "DRAM"}, {"part", 0.1}};
  EXPECT_NE(advised("Far from the machine's bound", history(), json::array({region}))
                .find("what DRAM would"),
            std::string::npos);
  EXPECT_EQ(advised("Far from the machine's bound", history(),
                    json::array({{{"name", "MatMul"}, {"bound", "cache"}}})),
            "");
}

TEST(Advice, NothingRightIsSaidFirst) {
  json of = history();
  of["best"] = nullptr;
  EXPECT_EQ(advice_of(json(), json::array({of}), json::array())[0]["title"],
            "Nothing is right yet");
}
}  // namespace
}  // namespace warploom::report
