// What misspelt words were meant to be.
#include "base/nearest.h"
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <vector>

namespace warploom {
namespace {
using Words = std::vector<std::string>;
const Words kCommands = {"optimize", "run", "report", "new", "show", "verify", "bench"};
const Words kFlags = {"--budget", "--out", "--candidates", "--no-resume", "--resume"};

TEST(Nearest, CountsLettersPutInLeftOutExchangedAndSwapped) {
  EXPECT_EQ(edit_distance("budget", "budget", 3), 0);
  EXPECT_EQ(edit_distance("buget", "budget", 3), 1);
  EXPECT_EQ(edit_distance("buddget", "budget", 3), 1);
  EXPECT_EQ(edit_distance("bidget", "budget", 3), 1);
  EXPECT_EQ(edit_distance("bugdet", "budget", 3), 1);
  EXPECT_EQ(edit_distance("kitten", "sitting", 5), 3);
  EXPECT_EQ(edit_distance("", "abc", 5), 3);
}

TEST(Nearest, StopsAtTheBound) {
  EXPECT_EQ(edit_distance("abcdef", "ghijkl", 2), 3);
  EXPECT_EQ(edit_distance("a", "abcdef", 2), 3);
}

TEST(Nearest, AMisspeltWordIsTheOneWithFewestEdits) {
  EXPECT_EQ(nearest("optimise", kCommands), "optimize");
  EXPECT_EQ(nearest("--buget", kFlags), "--budget");
  EXPECT_EQ(nearest("--resme", kFlags), "--resume");
  EXPECT_EQ(nearest("OPTIMIZE", kCommands), "optimize");
  EXPECT_EQ(nearest("--no_resume", kFlags), "--no-resume");
}

TEST(Nearest, ABeginningIsTheWholeWord) {
  EXPECT_EQ(nearest("opt", kCommands), "optimize");
  EXPECT_EQ(nearest("--cand", kFlags), "--candidates");
  EXPECT_EQ(nearest("reporting", kCommands), "report");
}

TEST(Nearest, AWordLikeNoneHasNoSuggestion) {
  for (const char* word : {"frobnicate", "x", "", "-", "--", "zz"})
    EXPECT_EQ(nearest(word, kCommands), std::nullopt) << word;
  EXPECT_EQ(nearest(std::string(100'000, 'o'), kCommands), std::nullopt);
}

TEST(Nearest, AKnownWordNeedsNone) {
  EXPECT_EQ(nearest("run", kCommands), std::nullopt);
}

TEST(Nearest, TheRemedyAsksAndGoesOn) {
  EXPECT_EQ(did_you_mean("--buget", kFlags), "did you mean --budget?");
  EXPECT_EQ(did_you_mean("--buget", kFlags, "see --help"), "did you mean --budget? See --help");
  EXPECT_EQ(did_you_mean("frobnicate", kCommands, "see --help"), "see --help");
  EXPECT_EQ(did_you_mean("frobnicate", kCommands), "");
}
}  // namespace
}  // namespace warploom
