#include "layout/algebra.h"
#include "layouts.h"
namespace warploom::layout {
namespace {
bool same_shape(const Layout& a, const Layout& b) {
  const auto x = a.modes(), y = b.modes();
  return std::equal(x.begin(), x.end(), y.begin(), y.end(), [](Mode m, Mode n) { return m.extent == n.extent; });
}

// Runs `law` on every result that exists and counts; a failure must be kLayout and say what was expected.
template <class T, class Law>
void hold(const Result<T>& result, int& held, const Law& law) {
  if (!result) {
    EXPECT_EQ(result.error().code, ErrorCode::kLayout);
    EXPECT_FALSE(result.error().expected.empty());
    EXPECT_FALSE(result.error().found.empty());
    return;
  }
  ++held;
  law(*result);
}

void expect_composition(const Layout& a, const Layout& b, const Layout& ab) {
  EXPECT_EQ(ab.size(), b.size());
  EXPECT_EQ(ab.rank(), b.is_leaf() ? ab.rank() : b.rank());
  for (std::int64_t i = 0; i < b.size(); ++i) {
    ASSERT_EQ(ab(i), a(b(i))) << to_string(a) << " o " << to_string(b) << " = " << to_string(ab) << " at " << i;
  }
}

TEST(Algebra, HeaderExamplesHold) {
  EXPECT_EQ(to_string(*compose(L("(6,2):(8,2)"), L("(4,3):(3,1)"))), "((2,2),3):((24,2),8)");
  EXPECT_EQ(to_string(*complement(L("4:2"), 24)), "(2,3):(1,8)");
  EXPECT_EQ(to_string(right_inverse(L("(4,8):(8,1)"))), "(8,4):(4,1)");
  EXPECT_EQ(right_inverse(L("(4,8):(8,1)"))(5), 20);
  EXPECT_EQ(to_string(*left_inverse(L("(4,8):(16,1)"))), "(16,4):(4,1)");
  EXPECT_EQ(to_string(*logical_divide(L("16:1"), L("4:2"))), "(4,(2,2)):(2,(1,8))");
  EXPECT_EQ(to_string(*logical_product(L("(2,2):(4,1)"), L("6:1"))), "((2,2),(2,3)):((4,1),(2,8))");
  EXPECT_EQ(max_common_vector(L("(8,4):(1,8)"), L("(4,8):(1,4)")), 32);
  EXPECT_EQ(max_common_vector(L("32:1"), L("(8,4):(1,16)")), 8);
  EXPECT_EQ(to_string(group(L("(4,8):(8,1)"), 8)->first), "(4,2):(8,1)");
  EXPECT_EQ(to_string(group(L("(4,8):(8,1)"), 8)->second), "4:2");
  EXPECT_EQ(to_string(common_reshape(L("(4,8):(1,4)"), L("(8,4):(4,1)"))->first), "(4,2,4):(1,4,8)");
  EXPECT_EQ(to_string(common_reshape(L("(4,8):(1,4)"), L("(8,4):(4,1)"))->second), "(4,2,4):(4,16,1)");
}

TEST(Algebra, CompositionIsFirstBThenA) {
  std::vector<Layout> as, bs;
  for (int n = 1; n <= 2; ++n) {
    for (auto& l : all_layouts(n, {2, 3, 4, 6}, {0, 1, 2, 5})) as.push_back(std::move(l));
    for (auto& l : all_layouts(n, {1, 2, 3, 4}, {0, 1, 2, 3, 4, 6})) bs.push_back(std::move(l));
  }
  int held = 0;
  for (const Layout& a : as) {
    for (const Layout& b : bs) hold(compose(a, b), held, [&](const Layout& ab) { expect_composition(a, b, ab); });
  }
  EXPECT_GT(held, 30000);
}

TEST(Algebra, CompositionThatCarriesIsRefused) {
  const auto result = compose(L("(2,2):(1,10)"), L("(2,2):(1,1)"));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kLayout);
}

TEST(Algebra, CompositionBeyondTheLeftLayoutIsRefused) {
  EXPECT_EQ(compose(L("4:1"), L("8:1")).error().code, ErrorCode::kLayout);
}

TEST(Algebra, CompositionWithBrokenDigitsIsRefused) {
  EXPECT_EQ(compose(L("(4,3):(1,7)"), L("3:2")).error().code, ErrorCode::kLayout);
}

TEST(Algebra, ComplementFillsUpToTheBound) {
  int held = 0;
  for (const Layout& a : small_layouts()) {
    for (const std::int64_t bound : {1, 24, 96}) {
      hold(complement(a, bound), held, [&](const Layout& rest) {
        const auto all = image(Layout::list({filter(a), rest}));
        EXPECT_EQ(*all.rbegin() + 1, static_cast<std::int64_t>(all.size()));
        EXPECT_EQ(std::set<std::int64_t>(all.begin(), all.end()).size(), all.size()) << to_string(a);
        EXPECT_GE(static_cast<std::int64_t>(all.size()), bound);
        std::int64_t last = 0;
        for (const Mode& m : rest.modes()) EXPECT_GE(m.stride, std::exchange(last, m.stride));
      });
    }
  }
  EXPECT_GT(held, 2000);
}

TEST(Algebra, ComplementOfOverlappingLeavesIsRefused) {
  EXPECT_EQ(complement(L("(2,2):(1,1)"), 8).error().code, ErrorCode::kLayout);
  EXPECT_EQ(complement(L("(4,2):(1,6)"), 24).error().code, ErrorCode::kLayout);
}

TEST(Algebra, RightInverseFindsEachInteger) {
  for (const Layout& a : small_layouts()) {
    const Layout r = right_inverse(a);
    for (std::int64_t i = 0; i < r.size(); ++i) ASSERT_EQ(a(r(i)), i) << to_string(a);
  }
}

TEST(Algebra, LeftInverseUndoes) {
  int held = 0;
  for (const Layout& a : small_layouts()) {
    hold(left_inverse(a), held, [&](const Layout& l) {
      for (std::int64_t i = 0; i < a.size(); ++i) ASSERT_EQ(l(a(i)), i) << to_string(a);
      const auto all = image(l);
      EXPECT_EQ(std::set<std::int64_t>(all.begin(), all.end()).size(), all.size());
      EXPECT_EQ(l.cosize(), l.size());
    });
  }
  EXPECT_GT(held, 300);
}

TEST(Algebra, LeftInverseOfAReplicatedLayoutIsRefused) {
  EXPECT_EQ(left_inverse(L("(2,2):(1,0)")).error().code, ErrorCode::kLayout);
}

TEST(Algebra, MaxCommonVectorIsTheLongestAgreement) {
  const auto layouts = all_layouts(3, {2, 4}, {0, 1, 2, 4, 8, 16});
  for (std::size_t i = 0; i < layouts.size(); i += 7) {
    for (std::size_t j = 0; j < layouts.size(); j += 5) {
      const Layout x = right_inverse(layouts[i]), y = right_inverse(layouts[j]);
      std::int64_t n = 0;
      while (n < std::min(x.size(), y.size()) && x(n) == y(n)) ++n;
      EXPECT_EQ(max_common_vector(layouts[i], layouts[j]), n) << to_string(layouts[i]) << " " << to_string(layouts[j]);
    }
  }
}

TEST(Algebra, DivideRefusesATileThatDoesNotDivide) {
  EXPECT_EQ(logical_divide(L("10:1"), L("4:1")).error().code, ErrorCode::kLayout);
}

TEST(Algebra, GroupRefusesACutThroughALeaf) {
  EXPECT_EQ(group(L("(4,6):(1,4)"), 16).error().code, ErrorCode::kLayout);
  EXPECT_EQ(group(L("4:1"), 8).error().code, ErrorCode::kLayout);
  EXPECT_EQ(group(L("4:1"), 0).error().code, ErrorCode::kLayout);
}

TEST(Algebra, CommonReshapeRefusesCutsThatDoNotNest) {
  EXPECT_EQ(common_reshape(L("(2,3):(1,2)"), L("(3,2):(1,3)")).error().code, ErrorCode::kLayout);
  EXPECT_EQ(common_reshape(L("4:1"), L("8:1")).error().code, ErrorCode::kLayout);
}

RC_GTEST_PROP(AlgebraProperty, CompositionOfRandomTrees, ()) {
  const Layout a = random_layout(), b = random_layout();
  const auto ab = compose(a, b);
  RC_CLASSIFY(ab.has_value());
  if (!ab) return;
  RC_ASSERT(ab->size() == b.size());
  for (std::int64_t i = 0; i < b.size(); ++i) RC_ASSERT((*ab)(i) == a(b(i)));
}

RC_GTEST_PROP(AlgebraProperty, BijectionsAreInvertedBothWays, ()) {
  const Layout a = random_bijection(), r = right_inverse(a), l = left_inverse(a).value();
  RC_ASSERT(r.size() == a.size());
  RC_ASSERT(same_function(r, l));
  for (std::int64_t i = 0; i < a.size(); ++i) RC_ASSERT(r(a(i)) == i && a(r(i)) == i);
}

RC_GTEST_PROP(AlgebraProperty, CompositionWithTheInverseIsTheIdentity, ()) {
  const Layout a = random_bijection();
  const auto id = compose(right_inverse(a), a);
  if (id) RC_ASSERT(same_function(*id, Layout(a.size(), 1)));
}

RC_GTEST_PROP(AlgebraProperty, DivideReachesTheSameIntegers, ()) {
  const Layout a = random_bijection();
  const Layout t(*rc::gen::element<std::int64_t>(2, 3, 4), *rc::gen::element<std::int64_t>(1, 2, 3, 4));
  const auto divided = logical_divide(a, t);
  RC_CLASSIFY(divided.has_value());
  if (!divided) return;
  RC_ASSERT(image(*divided) == image(a));
  for (std::int64_t i = 0; i < t.size(); ++i) RC_ASSERT(divided->part(0)(i) == a(t(i)));
}

RC_GTEST_PROP(AlgebraProperty, ProductCopiesWithoutOverlap, ()) {
  const Layout a = random_layout(1), b = random_bijection();
  const auto made = logical_product(a, b);
  RC_CLASSIFY(made.has_value());
  if (!made) return;
  RC_ASSERT(made->part(0) == a);
  const auto all = image(Layout::list({filter(a), made->part(1)}));
  RC_ASSERT(std::set<std::int64_t>(all.begin(), all.end()).size() == all.size());
}

RC_GTEST_PROP(AlgebraProperty, GroupSplitsTheIndex, ()) {
  const Layout a = random_layout();
  const auto n = *rc::gen::element<std::int64_t>(1, 2, 3, 4, 6, 8, 16);
  const auto cut = group(a, n);
  RC_CLASSIFY(cut.has_value());
  if (!cut) return;
  RC_ASSERT(cut->first.size() == n);
  RC_ASSERT(same_function(Layout::list({cut->first, cut->second}), a));
}

RC_GTEST_PROP(AlgebraProperty, CommonReshapeKeepsBothFunctions, ()) {
  const Layout a = random_layout(), b = random_layout();
  const auto both = common_reshape(a, b);
  RC_CLASSIFY(both.has_value());
  if (!both) return;
  RC_ASSERT(same_shape(both->first, both->second));
  RC_ASSERT(same_function(both->first, a) && same_function(both->second, b));
}
}  // namespace
}  // namespace warploom::layout
