// The closing table and its first line, of outcomes that are made up: what is decided, what is not,
// and what is not known.
#include "search/outcome.h"
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include "cli/command.h"
#include "runtime/noise.h"
#include "search/headline.h"
#include "verify/evaluator.h"
#include "verify/setup.h"

namespace warploom::cli {
namespace {
using nlohmann::json;

constexpr verify::Bound kBound{527.8, "DRAM"};
const runtime::Noise kQuiet{.watched = true, .cores = 2, .load = 0.3, .run_delay = 0.01};
const runtime::Noise kBusy{.watched = true, .cores = 2, .load = 4.1, .run_delay = 0.31};

// 910 us beside a reference of 1190, in turns on a quiet machine.
search::Outcome faster() {
  search::Outcome out{.problem = "mm",
                      .label = "MatMul",
                      .output = "c",
                      .target = "x86-64-v4",
                      .device = "a CPU",
                      .reference = "oneDNN 2.6.3",
                      .proven = true,
                      .bound = kBound,
                      .candidates = 7,
                      .seconds = 2,
                      .seed = 1};
  verify::Verdict& v = out.verdict;
  v.accepted = true;
  v.error = 1e-7;
  v.max_error = 2e-7;
  v.median_us = 910;
  v.low_us = 900;
  v.high_us = 920;
  v.reference_us = 1190;
  v.reference_low_us = 1170;
  v.reference_high_us = 1210;
  v.speedup = {1.31, 1.26, 1.36, 40};
  v.samples = 40;
  v.noise = kQuiet;
  v.evidence = {{}};
  return out;
}

json record_of(search::Outcome of) {
  search::sum_up(of, {of});
  return search::to_json(of);
}

// Two regions, each beside its reference, and the whole in a run of its own.
search::Outcome network(bool second_has_a_reference) {
  search::Outcome first = faster();
  first.times = 2;
  search::Outcome second = faster();
  second.label = "Conv + Relu";
  second.output = "t2";
  if (!second_has_a_reference) {
    second.reference.clear();
    second.verdict.reference_us = second.verdict.reference_low_us = 0;
    second.verdict.reference_high_us = 0;
    second.verdict.speedup = {};
  }
  search::Outcome whole = faster();
  search::sum_up(whole, {first, second});
  if (!second_has_a_reference) whole.without_reference = {second.label};
  return whole;
}

std::string table_of(const json& outcome) {
  return text_of("outcome", search::with_words(outcome));
}

TEST(Headline, AFasterOneIsSaidAsAPersonWould) {
  json outcome = record_of(faster());
  outcome["bundle"] = "out/x";
  EXPECT_EQ(search::headline(outcome),
            "1.31× faster than oneDNN 2.6.3 (1.19 ms → 910.0 us, ±4 %), proven right; 58 % of this "
            "machine's DRAM bound; make -C out/x check");
}

TEST(Headline, ASlowerOneIsThatManyTimesTheSpeed) {
  search::Outcome slower = faster();
  slower.verdict.speedup = {0.77, 0.75, 0.79, 40};
  EXPECT_TRUE(search::headline(record_of(slower))
                  .starts_with("0.77× the speed of oneDNN 2.6.3 (1.19 ms → 910.0 us, ±3 %), "
                               "proven right; "))
      << search::headline(record_of(slower));
}

TEST(Headline, OnABusyMachineNothingIsDecided) {
  search::Outcome busy = faster();
  busy.verdict.speedup = {105.5, 104, 107, 40};
  busy.verdict.noise = kBusy;
  const std::string line = search::headline(record_of(busy));
  EXPECT_TRUE(line.starts_with(
      "undecided against oneDNN 2.6.3: 104.00× to 107.00× its speed (1.19 ms → 910.0 us), because "
      "the machine is busy; proven right; "))
      << line;
}

TEST(Headline, AnIntervalThatHoldsOneIsUndecided) {
  search::Outcome close = faster();
  close.verdict.speedup = {1.01, 0.97, 1.04, 40};
  EXPECT_TRUE(search::headline(record_of(close)).starts_with("undecided against oneDNN 2.6.3: "));
}

TEST(Headline, WithoutAReferenceNothingIsKnownToCompareWith) {
  search::Outcome alone = faster();
  alone.reference.clear();
  alone.verdict.reference_us = 0;
  alone.verdict.speedup = {};
  EXPECT_TRUE(search::headline(record_of(alone))
                  .starts_with("910.0 us, nothing is known to compare with; proven right; "));
}

TEST(Headline, WhereNoLibraryHasItThePlainKernelIsCalledPlain) {
  search::Outcome plain = faster();
  plain.reference = "plain";
  EXPECT_TRUE(search::headline(record_of(plain))
                  .starts_with("1.31× faster than the plain kernel (1.19 ms"));
}

TEST(Headline, LibrariesAreNamedOnceAndWithoutWhatOfThemIsCalled) {
  search::Outcome fused = faster();
  fused.reference = "oneDNN 2.6.3 (convolution + bias + relu) + oneDNN 2.6.3 (pooling) + plain";
  EXPECT_TRUE(search::headline(record_of(fused))
                  .starts_with("1.31× faster than oneDNN 2.6.3 + plain (1.19 ms"));
}

TEST(Headline, ADroppedReferenceIsNamedWithTheReason) {
  search::Outcome dropped = faster();
  dropped.verdict.reference_us = 0;
  dropped.verdict.speedup = {};
  dropped.verdict.reference_dropped = "its samples have two modes, 4.3 and 500.0 us";
  EXPECT_TRUE(search::headline(record_of(dropped))
                  .starts_with("910.0 us; oneDNN 2.6.3 could not be compared with: its samples "
                               "have two modes, 4.3 and 500.0 us; proven right"));
}

TEST(Headline, WhatWasInterruptedIsNotSaidToBeProven) {
  search::Outcome early = faster();
  early.proven = false;
  EXPECT_NE(search::headline(record_of(early)).find("right on samples, not yet judged whole"),
            std::string::npos);
}

TEST(Headline, OfANetworkTheReferencesCountTogether) {
  const json outcome = search::to_json(network(true));
  EXPECT_TRUE(search::headline(outcome).starts_with(
      "1.31× faster than its regions' references together (oneDNN 2.6.3) (3.57 ms → 2.73 ms, ±4 "
      "%), proven right"))
      << search::headline(outcome);
}

TEST(Headline, OfANetworkItSaysWhichRegionsHaveNoReference) {
  const json outcome = search::to_json(network(false));
  EXPECT_TRUE(outcome["speedup"].is_null());
  EXPECT_TRUE(outcome["reference_us"].is_null()) << "a part's is none of the whole";
  EXPECT_EQ(outcome["part"]["reference_us"], 2380);
  EXPECT_EQ(outcome["references_missing"], json({"Conv + Relu"}));
  EXPECT_TRUE(search::headline(outcome).starts_with(
      "2.73 ms; where a reference is known 1.31× faster than its regions' references together "
      "(oneDNN 2.6.3) (2.38 ms → 1.82 ms, ±4 %); none is for Conv + Relu; proven right"))
      << search::headline(outcome);
}

TEST(Headline, AFolderIsAWordOfTheShell) {
  json outcome = record_of(faster());
  outcome["bundle"] = "my out/$(x)";
  EXPECT_NE(search::headline(outcome).find("make -C 'my out/$(x)' check"), std::string::npos);
}

TEST(Headline, OfAPlanOfAnOlderProgramSaysWhatItKnows) {
  const json plan = {{"best_us", 910.0},
                     {"reference", "none"},
                     {"reference_us", 0.0},
                     {"speedup", 0.0},
                     {"roofline_fraction", 0.58}};
  EXPECT_EQ(search::headline(plan),
            "910.0 us, nothing is known to compare with; proven right; 58 % of this machine's "
            "bound");
}

TEST(OutcomeJson, WhatIsNotKnownIsNullAndNeverNought) {
  search::Outcome alone;
  alone.problem = "p";
  const json outcome = search::to_json(alone);
  for (const char* key :
       {"best_us", "best_interval_us", "reference", "reference_us", "reference_interval_us",
        "reference_dropped", "speedup", "speedup_interval", "roofline_fraction", "bound",
        "bound_us", "error", "max_error", "reference_error", "machine", "samples"})
    EXPECT_TRUE(outcome.at(key).is_null()) << key << " " << outcome[key];
  EXPECT_EQ(outcome["standing"], "unknown");
}

TEST(OutcomeJson, KeepsIntervalsAndTheStateOfTheMachine) {
  const json outcome = record_of(faster());
  EXPECT_EQ(outcome["best_interval_us"], json({900.0, 920.0}));
  EXPECT_EQ(outcome["reference_interval_us"], json({1170.0, 1210.0}));
  EXPECT_EQ(outcome["speedup"], 1.31);
  EXPECT_EQ(outcome["speedup_interval"], json({1.26, 1.36}));
  EXPECT_EQ(outcome["standing"], "faster");
  EXPECT_EQ(outcome["machine"]["busy"], false);
  EXPECT_EQ(outcome["regions"][0]["speedup"], 1.31);
  EXPECT_EQ(outcome["regions"][0]["label"], "MatMul");
}

TEST(OutcomeJson, NoFractionOfABoundIsAboveAll) {
  const json above = search::against_bound(kBound, 396);
  EXPECT_TRUE(above["roofline_fraction"].is_null());
  EXPECT_EQ(above["bound_text"], "above the DRAM bound: data stays in cache");
  EXPECT_EQ(search::against_bound({100, "arithmetic"}, 99)["bound_text"],
            "at the arithmetic bound");
  EXPECT_EQ(search::against_bound({}, 99)["bound_text"], "no bound is known");
  EXPECT_EQ(search::against_bound(kBound, 910)["bound_text"], "58 % of the DRAM bound");
}

TEST(OutcomeJson, FractionsOfStatedAndOfMeasuredRatesAreNamed) {
  const json told = search::against_bound({500, "DRAM", 600}, 1000);
  EXPECT_EQ(told["roofline_fraction"], 0.5);
  EXPECT_EQ(told["measured_fraction"], 0.6);
  EXPECT_EQ(told["measured_bound_us"], 600);
  EXPECT_EQ(told["bound_text"], "50 % of the DRAM bound, 60 % of the copy rate measured here");
  EXPECT_TRUE(search::against_bound(kBound, 910)["measured_fraction"].is_null());
}

TEST(OutcomeTable, OfOneKernel) {
  json outcome = record_of(faster());
  outcome["bundle"] = "out/x";
  EXPECT_EQ(table_of(outcome),
            "1.31× faster than oneDNN 2.6.3 (1.19 ms → 910.0 us, ±4 %), proven right; 58 % of this "
            "machine's DRAM bound; make -C out/x check\n"
            "\n"
            "  problem      mm\n"
            "  target       x86-64-v4 (a CPU)\n"
            "  track        fp32\n"
            "  time         910.0 us (95 % of medians 900.0 us to 920.0 us)\n"
            "  reference    oneDNN 2.6.3: 1.19 ms (95 % of medians 1.17 ms to 1.21 ms)\n"
            "  speedup      1.31× (95 % of medians 1.26× to 1.36×)\n"
            "  machine      quiet\n"
            "  bound        58 % of the DRAM bound\n"
            "  error        1.00e-07 relative, 2.00e-07 at most\n"
            "  schedule     \n"
            "  candidates   7 in 2.0 s, seed 1\n"
            "  bundle       out/x   (make -C out/x check)\n");
}

TEST(OutcomeTable, OfANetworkNumbersItsRegionsAsDataFlows) {
  const std::string table = table_of(search::to_json(network(false)));
  for (const char* line : {"  machine      quiet\n",
                           "  1  MatMul -> c and 1 more like it  910.0 us (95 % of medians "
                           "900.0 us to 920.0 us)  oneDNN 2.6.3: 1.19 ms",
                           "  2  Conv + Relu -> t2  ", "no reference is known",
                           "2.38 ms by the references, 1.82 ms here; no reference for Conv + Relu"})
    EXPECT_NE(table.find(line), std::string::npos) << line << "\n" << table;
}

TEST(OutcomeTable, SaysWhatMakesTheMachineBusy) {
  search::Outcome busy = faster();
  busy.verdict.noise = kBusy;
  const std::string table = table_of(record_of(busy));
  EXPECT_NE(table.find("  machine      busy (load 4.1 on 2 cores, run delay 31 %)\n"),
            std::string::npos)
      << table;
  EXPECT_NE(table.find("  speedup      undecided: 1.26× to 1.36×, because the machine is busy\n"),
            std::string::npos)
      << table;
}

TEST(OutcomeTable, HasNoNoughtForWhatIsNotKnown) {
  search::Outcome alone = faster();
  alone.reference.clear();
  alone.verdict.reference_us = 0;
  alone.verdict.speedup = {};
  alone.bound = {};
  const std::string table = table_of(record_of(alone));
  for (const char* line : {"  reference    no reference is known\n", "  speedup      not known\n",
                           "  bound        no bound is known\n"})
    EXPECT_NE(table.find(line), std::string::npos) << line << "\n" << table;
}
}  // namespace
}  // namespace warploom::cli
