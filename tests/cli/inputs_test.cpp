#include <gtest/gtest.h>
#include "cli/command.h"
#include "cli/progress.h"
#include "search/options.h"

namespace warploom::cli {
namespace {
TEST(CliProgress, SaysTheBestSoFarWithinTheWidth) {
  const search::Progress progress{.seconds = 12,
                                  .budget_seconds = 60,
                                  .candidates = 41,
                                  .refused = 3,
                                  .best_us = 812,
                                  .reference_us = 1000,
                                  .best = "matmul_cpu block_m=8"};
  EXPECT_EQ(progress_text(progress, 200),
            "12 of 60 s, 41 tried, 3 refused, best 812.0 us, the reference 1.00 ms: "
            "matmul_cpu block_m=8");
  EXPECT_EQ(progress_text(progress, 10).size(), 10u);
}

TEST(CliProgress, SaysWhichRegionOfSeveral) {
  const search::Progress progress{.seconds = 1,
                                  .budget_seconds = 9,
                                  .candidates = 4,
                                  .region = 2,
                                  .regions = 3,
                                  .region_name = "MatMul+Add"};
  EXPECT_EQ(progress_text(progress, 200), "1 of 9 s, 4 tried of region 2 of 3 (MatMul+Add)");
}

TEST(CliProgress, SaysWhatItIsBusyWithBeforeAnythingIsTried) {
  EXPECT_EQ(progress_text({.seconds = 3, .budget_seconds = 9, .phase = "planning"}, 200),
            "3 of 9 s, planning");
  EXPECT_EQ(progress_text({.seconds = 4, .phase = "judging the bundle"}, 200),
            "4 s, judging the bundle");
}

TEST(CliTable, LinesThatFollowOneAnotherShareColumns) {
  EXPECT_EQ(aligned("one\na  \t1  \t2\n\033[1mlong\033[0m  \t33  \t4\ntwo\n  \t5\n"),
            "one\na     1   2\n\033[1mlong\033[0m  33  4\ntwo\n  5\n");
}
}  // namespace
}  // namespace warploom::cli
