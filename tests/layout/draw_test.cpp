#include <cstddef>
#include <string>
#include <string_view>
#include "layout/memory_layout.h"
#include "layout/tv_layout.h"
#include "tv_layouts.h"

namespace warploom::layout {
namespace {
size_t count(const std::string& text, std::string_view piece) {
  size_t n = 0;
  for (size_t at = text.find(piece); at != std::string::npos; at = text.find(piece, at + 1))
    ++n;
  return n;
}

TEST(Draw, HeaderExampleHolds) {
  const TvLayout l{{2, 4}, {{2, {1, 0}}, {2, {0, 2}}}, {{2, {0, 1}}}};
  EXPECT_EQ(draw(l).text,
            "tile 2x4 thread [2:(1,0)] [2:(0,2)] value [2:(0,1)]\n"
            "T0V0 T0V1 T2V0 T2V1\n"
            "T1V0 T1V1 T3V0 T3V1\n");
}

TEST(Draw, ReplicasAndHolesAreMarked) {
  const TvLayout l{{4}, {{2, {0}}, {2, {1}}}, {}};
  EXPECT_EQ(draw(l).text, "tile 4 thread [2:(0)] [2:(1)] value\nT0V0+ T2V0+     .     .\n");
}

TEST(Draw, MemoryShowsBanks) {
  const MemoryLayout m = dense({2, 4}, 1, 32, 0, {1, 2, 2});
  EXPECT_EQ(draw(m).text, "(2:4), (4:1) of 32 bits swizzle{1,2,2}\n0 1 2 3\n5 4 7 6\n");
}

TEST(Draw, WhatIsLeftOutIsSaid) {
  const std::string text = draw(dense({128, 128}, 1, 16)).text;
  EXPECT_EQ(count(text, "\n"), 66u);
  EXPECT_NE(text.find("64 of 128 rows, 64 of 128 columns shown"), std::string::npos);
}
}  // namespace
}  // namespace warploom::layout
