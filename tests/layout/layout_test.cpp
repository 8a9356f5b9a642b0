#include "layout/layout.h"
#include "layouts.h"
namespace warploom::layout {
namespace {
TEST(Layout, HeaderExampleHolds) {
  const Layout l = L("((2,2),4):((1,8),2)");
  EXPECT_EQ(l.size(), 16);
  EXPECT_EQ(l.cosize(), 16);
  EXPECT_EQ(l.rank(), 2);
  EXPECT_EQ(l(3), 9);
  EXPECT_EQ(l(11), 13);
}

TEST(Layout, CosizeIsOnePastTheLargestInteger) {
  for (const Layout& l : small_layouts()) EXPECT_EQ(l.cosize(), *image(l).rbegin() + 1) << to_string(l);
}

TEST(Layout, TextIsReadBack) {
  for (const char* text : {"4:1", "(4,2):(1,4)", "((2,2),4):((1,8),2)", "(1,(2,(3,4))):(0,(1,(2,6)))"}) {
    EXPECT_EQ(to_string(L(text)), text);
  }
}

TEST(Layout, BadTextIsAnError) {
  for (const char* text :
       {"", "4", "4:", "(4:1", "4:1)", "(4,2):(1)", "(4,2):1", "0:1", "4:-1", "a:b", "4:1x", "99999999999999999999:1"}) {
    const auto l = parse_layout(text);
    ASSERT_FALSE(l) << text;
    EXPECT_EQ(l.error().code, ErrorCode::kLayout);
    EXPECT_FALSE(l.error().expected.empty());
  }
  EXPECT_FALSE(parse_layout(std::string(100000, '(')));
}

TEST(Layout, CoalesceKeepsTheFunction) {
  for (const Layout& l : small_layouts()) EXPECT_TRUE(same_function(coalesce(l), l)) << to_string(l);
}

TEST(Layout, CoalesceExample) { EXPECT_EQ(to_string(coalesce(L("(2,(1,6)):(1,(6,2))"))), "12:1"); }

TEST(Layout, CoalesceLeavesNothingToJoin) {
  for (const Layout& l : small_layouts()) {
    const auto modes = coalesce(l).modes();
    for (std::size_t i = 0; i + 1 < modes.size(); ++i) {
      EXPECT_GT(modes[i].extent, 1);
      EXPECT_NE(modes[i + 1].stride, modes[i].extent * modes[i].stride);
    }
  }
}

TEST(Layout, FilterKeepsTheSetOfIntegers) {
  for (const Layout& l : small_layouts()) {
    const auto all = image(l), kept = image(filter(l));
    EXPECT_EQ(std::set<std::int64_t>(all.begin(), all.end()), std::set<std::int64_t>(kept.begin(), kept.end()));
  }
  EXPECT_EQ(to_string(filter(L("(2,4,8):(1,0,2)"))), "16:1");
}

RC_GTEST_PROP(LayoutProperty, CoalesceKeepsTheFunctionAndIsFlat, ()) {
  const Layout l = random_layout();
  RC_ASSERT(same_function(coalesce(l), l));
  RC_ASSERT(coalesce(l) == Layout::flat(coalesce(l).modes()));
}

RC_GTEST_PROP(LayoutProperty, TextRoundTrips, ()) {
  const Layout l = random_layout(3);
  const auto read = parse_layout(to_string(l));
  RC_ASSERT(read && *read == l);
}

RC_GTEST_PROP(LayoutProperty, PartsAddUp, ()) {
  const Layout a = random_layout(), b = random_layout();
  const Layout both = Layout::list({a, b});
  const auto i = *rc::gen::inRange<std::int64_t>(0, a.size()), j = *rc::gen::inRange<std::int64_t>(0, b.size());
  RC_ASSERT(both(i + j * a.size()) == a(i) + b(j));
}
}  // namespace
}  // namespace warploom::layout
