// Child processes that check batches of programs: one that crashes or hangs costs itself alone.
#include <gtest/gtest.h>
#include <unistd.h>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>
#include "check.h"

namespace warploom::fuzz {
namespace {
constexpr uint64_t kCrashes = 3;
constexpr uint64_t kHangs = 6;

std::vector<Outcome> check_some(uint64_t first, int count, const WorkingOn& working_on) {
  std::vector<Outcome> outcomes;
  for (int i = 0; i < count; ++i) {
    const uint64_t seed = first + static_cast<uint64_t>(i);
    working_on(i);
    if (seed == kCrashes) std::_Exit(1);
    if (seed == kHangs) ::pause();
    outcomes.push_back({seed, "kind", "cpu", "agrees", "two\nlines"});
  }
  return outcomes;
}

TEST(FuzzRun, AProgramThatCrashesOrHangsCostsItselfAlone) {
  const fuzz::Run some{.first = 1, .count = 10, .workers = 2, .batch = 4, .seconds_a_program = 1};
  std::map<uint64_t, std::string> codes;
  for (const Outcome& outcome : run(some, check_some)) {
    EXPECT_TRUE(codes.emplace(outcome.seed, outcome.code).second) << outcome.seed << " twice";
    if (outcome.agrees()) {
      EXPECT_EQ(outcome.detail, "two\nlines");
    }
  }
  std::map<uint64_t, std::string> wanted;
  for (uint64_t seed = 1; seed <= 10; ++seed)
    wanted[seed] = "agrees";
  wanted[kCrashes] = "crash";
  wanted[kHangs] = "hang";
  EXPECT_EQ(codes, wanted);
}
}  // namespace
}  // namespace warploom::fuzz
