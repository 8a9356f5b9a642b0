// Which region of a network is worth more time.
#include <gtest/gtest.h>
#include "search/shares.h"

namespace warploom::search {
namespace {
TEST(Shares, ARegionIsWorthWhatItCanStillGain) {
  const Prospect near{.best_us = 110, .floor_us = 100};
  const Prospect far{.best_us = 60, .floor_us = 10};
  EXPECT_GT(worth_of(far), worth_of(near));
}

TEST(Shares, ARegionThatOccursOftenIsWorthMore) {
  EXPECT_EQ(worth_of({.best_us = 20, .floor_us = 10, .times = 3}),
            3 * worth_of({.best_us = 20, .floor_us = 10}));
}

TEST(Shares, CandidatesThatGainNothingMakeARegionWorthLess) {
  EXPECT_LT(worth_of({.best_us = 20, .dry = 30}), worth_of({.best_us = 20, .dry = 3}));
}

TEST(Shares, ARegionWithNothingLeftIsWorthNothing) {
  EXPECT_EQ(worth_of({.best_us = 20, .has_more = false}), 0);
  EXPECT_EQ(worth_of({.best_us = 10, .floor_us = 12}), 0);
}
}  // namespace
}  // namespace warploom::search
