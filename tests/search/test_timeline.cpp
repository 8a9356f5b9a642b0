#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include "search/timeline.h"

namespace warploom::search {
namespace {
TEST(Timeline, OfNothingIsEmpty) {
  EXPECT_EQ(Timeline().to_json(3).size(), 0);
}

TEST(Timeline, StretchesFollowEachOtherWithoutGaps) {
  Timeline timeline;
  timeline.enter("planning", "", 0);
  timeline.see({.region_name = "MatMul", .phase = "compiling"}, 1);
  timeline.see({.region_name = "MatMul"}, 4);
  const nlohmann::json all = timeline.to_json(6);
  ASSERT_EQ(all.size(), 3);
  EXPECT_EQ(all[0]["to"], 1);
  EXPECT_EQ(all[1]["phase"], "compiling");
  EXPECT_EQ(all[1]["to"], 4);
  EXPECT_EQ(all[2]["phase"], "trying candidates");
  EXPECT_EQ(all[2]["to"], 6);
}

TEST(Timeline, APhaseThatIsReportedAgainIsOneStretch) {
  Timeline timeline;
  timeline.see({.candidates = 1}, 0);
  timeline.see({.candidates = 2}, 2);
  EXPECT_EQ(timeline.to_json(3).size(), 1);
}

TEST(Timeline, AnotherRegionIsAnotherStretch) {
  Timeline timeline;
  timeline.see({.region_name = "Conv"}, 0);
  timeline.see({.region_name = "Gemm"}, 2);
  EXPECT_EQ(timeline.to_json(3)[1]["region"], "Gemm");
}
}  // namespace
}  // namespace warploom::search
