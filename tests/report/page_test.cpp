// Pages of records: what is known is shown, what is not is a dash with a reason, nothing is markup.
#include "report/page.h"
#include <gtest/gtest.h>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <utility>
#include "report/table.h"

namespace warploom::report {
namespace {
using nlohmann::json;

// The page less its style and script.
std::string shown(Facts facts) {
  const std::string page = page_of(std::move(facts));
  const size_t body = page.find("<body>");
  return page.substr(body, page.find("<aside") - body);
}

json old_plan() {
  return {{"problem", "mm"},        {"best_us", 812.5},
          {"best_low_us", 800},     {"best_high_us", 830},
          {"reference", "none"},    {"reference_us", 0.0},
          {"speedup", 0.0},         {"error", 2e-7},
          {"reference_error", 0.0}, {"roofline_fraction", 1.33},
          {"candidates", 12},       {"seconds", 23.0}};
}

TEST(Page, SentinelsOfOlderPlansAreDashesWithAReason) {
  const std::string page = shown({.title = "mm", .plan = old_plan()});
  EXPECT_FALSE(std::regex_search(page, std::regex("133 %|>\\s*-1|0\\.0[^-0-9]|>none")))
      << page.substr(0, 3000);
  EXPECT_NE(page.find("title=\"nothing to compare with was measured\">–"), page.npos);
  EXPECT_NE(page.find("the data stay in a cache"), page.npos);
  EXPECT_NE(page.find("812.5 µs"), page.npos);
  EXPECT_NE(page.find("±2 %, with 95 % confidence"), page.npos);
}

TEST(Page, FiguresOfTodaysPlansAreShownWithTheirIntervals) {
  json plan = old_plan();
  plan.update({{"best_interval_us", {700, 900}},
               {"reference", "oneDNN 2.6.3"},
               {"reference_us", 1000},
               {"speedup", 1.23},
               {"speedup_interval", {1.1, 1.35}},
               {"roofline_fraction", 0.58},
               {"bound", "DRAM"}});
  const std::string page = shown({.title = "mm", .headline = "1.23× faster", .plan = plan});
  for (const char* part : {"1.23× faster", "1.10× to 1.35×", "58 %", "DRAM, by datasheet rates",
                           "oneDNN 2.6.3", "±12 %"})
    EXPECT_NE(page.find(part), page.npos) << part;
}

TEST(Page, ValuesOfOtherKindsAreNoFigures) {
  const json plan = {{"best_us", "fast"}, {"seed", json::array({1})},
                     {"device", json()},  {"launch_list", "none"},
                     {"track", 7},        {"candidates", -3}};
  const std::string page = shown({.title = "x", .plan = plan});
  EXPECT_EQ(page.find("fast"), page.npos);
  EXPECT_EQ(page.find("-3"), page.npos);
}

TEST(Page, NamesAreNoMarkup) {
  const std::string hostile = "<img src=x onerror=alert(1)>\"'&";
  json plan = old_plan();
  for (const char* key : {"summary", "device", "target", "reference"})
    plan[key] = hostile;
  plan["launch_list"]["kernels"] = {{{"name", hostile}, {"source", hostile}}};
  Facts facts{.title = hostile, .headline = hostile, .version = hostile, .plan = plan};
  facts.notes.push_back(hostile);
  facts.regions.push_back({{"name", hostile}, {"reference", hostile}, {"part", 0.1}});
  facts.programs.push_back({{"name", hostile}, {"text", hostile}, {"region", hostile}});
  EXPECT_EQ(page_of(facts).find("<img"), std::string::npos);
}

TEST(Page, WhatBoundsARegionIsNamedAndItsShareIsNeverAboveOne) {
  Facts facts{.title = "x", .plan = old_plan()};
  facts.regions = {{{"name", "a"}, {"best_us", 10}, {"bound", "DRAM"}, {"part", 0.4}},
                   {{"name", "b"},
                    {"best_us", 10},
                    {"bound", "cache"},
                    {"why_unknown", {{"part", "its 64 KiB fit in a cache"}}}},
                   {{"name", "c"}, {"best_us", 10}, {"bound", "arithmetic"}, {"part", 1.2}}};
  const std::string page = shown(facts);
  EXPECT_NE(page.find("<td>DRAM</td>"), page.npos);
  EXPECT_NE(page.find(">40 %</td>"), page.npos);
  EXPECT_NE(page.find("title=\"its 64 KiB fit in a cache\">–"), page.npos);
  EXPECT_EQ(page.find("120 %"), page.npos);
}

TEST(Table, AColumnWithoutItsFigureSaysWhy) {
  const std::string text = table("candidates", json::array({{{"n", 1}, {"schedule", "direct"}}}));
  EXPECT_NE(text.find("title=\"it was refused before it was timed\">–</td>"), text.npos);
  EXPECT_EQ(table("candidates", json::array()), "");
}
}  // namespace
}  // namespace warploom::report
