#include "layout/f2.h"
#include "tv_layouts.h"
namespace warploom::layout {
namespace {
BitMatrix random_matrix(int rows, int columns) {
  BitMatrix a{rows, {}};
  for (int i = 0; i < columns; ++i) { a.columns.push_back(*rc::gen::inRange<std::uint64_t>(0, std::uint64_t{1} << rows)); }
  return a;
}

TEST(F2, HeaderExampleHolds) {
  const BitMatrix a = bit_matrix(L("(4,2):(2,1)")).value();
  EXPECT_EQ(a, (BitMatrix{3, {0b010, 0b100, 0b001}}));
  EXPECT_EQ(inverse(a).value(), bit_matrix(L("(2,4):(4,1)")).value());
}

TEST(F2, SwizzleIsItsOwnInverse) {
  for (const Swizzle s : {Swizzle{}, Swizzle{1, 4, 3}, Swizzle{2, 4, 3}, Swizzle{3, 4, 3}, Swizzle{2, 3, 4}}) {
    const BitMatrix m = bit_matrix(s, 12).value();
    EXPECT_EQ(compose(m, m).value(), identity_bits(12));
    EXPECT_EQ(inverse(m).value(), m);
    for (std::int64_t x = 0; x < 4096; ++x) ASSERT_EQ(m(static_cast<std::uint64_t>(x)), static_cast<std::uint64_t>(s(x)));
  }
}

TEST(F2, LayoutsThatAreNotLinearAreRefused) {
  for (const char* text : {"3:1", "(2,2):(1,1)", "(4,2):(1,3)"}) {
    EXPECT_EQ(bit_matrix(L(text)).error().code, ErrorCode::kLayout) << text;
  }
  EXPECT_EQ(bit_matrix(Swizzle{3, 4, 3}, 9).error().code, ErrorCode::kLayout);
  EXPECT_EQ(bit_matrix(mma_accumulator(), dense({16, 8}, {1, 0}, 32, 1)).error().code, ErrorCode::kLayout);
}

TEST(F2, SingularMatricesAreNotInverted) {
  EXPECT_EQ(inverse(BitMatrix{2, {1, 1}}).error().code, ErrorCode::kLayout);
  EXPECT_EQ(inverse(BitMatrix{3, {1, 2}}).error().code, ErrorCode::kLayout);
  EXPECT_EQ(compose(BitMatrix{1, {1}}, identity_bits(2)).error().code, ErrorCode::kLayout);
}

TEST(F2, ReplicatedThreadBitsAreTheKernel) {
  const TvLayout l = coalesced({1, 128}, 1, 4, 128).value();
  const auto replicas = kernel(bit_matrix(l, dense({1, 128}, {1, 0}, 32)).value());
  EXPECT_EQ(replicas, (std::vector<std::uint64_t>{32, 64}));
}

TEST(F2, LayoutAndMatrixAgree) {
  int linear = 0;
  for (const Layout& l : small_layouts()) {
    const auto m = bit_matrix(l);
    if (!m) continue;
    ++linear;
    for (std::int64_t i = 0; i < l.size(); ++i) {
      ASSERT_EQ((*m)(static_cast<std::uint64_t>(i)), static_cast<std::uint64_t>(l(i))) << to_string(l);
    }
  }
  EXPECT_GT(linear, 200);
}

RC_GTEST_PROP(F2Property, CompositionIsFunctionComposition, ()) {
  const BitMatrix b = random_matrix(6, 5), a = random_matrix(4, 6);
  const BitMatrix c = compose(a, b).value();
  for (std::uint64_t x = 0; x < 32; ++x) RC_ASSERT(c(x) == a(b(x)));
}

RC_GTEST_PROP(F2Property, InverseUndoes, ()) {
  const BitMatrix a = random_matrix(5, 5);
  const auto i = inverse(a);
  RC_ASSERT(i.has_value() == (rank(a) == 5));
  RC_CLASSIFY(i.has_value());
  if (!i) return;
  RC_ASSERT(compose(*i, a).value() == identity_bits(5));
  RC_ASSERT(compose(a, *i).value() == identity_bits(5));
}

RC_GTEST_PROP(F2Property, RankCountsTheImageAndTheKernelTheRest, ()) {
  const BitMatrix a = random_matrix(5, 6);
  std::set<std::uint64_t> image;
  for (std::uint64_t x = 0; x < 64; ++x) image.insert(a(x));
  RC_ASSERT(image.size() == std::size_t{1} << rank(a));
  const auto zero = kernel(a);
  RC_ASSERT(static_cast<int>(zero.size()) + rank(a) == 6);
  for (const std::uint64_t x : zero) RC_ASSERT(x != 0 && a(x) == 0);
}

RC_GTEST_PROP(F2Property, ClosedFormOfConflictsEqualsCounting, ()) {
  const std::vector<std::int64_t> extents = {*rc::gen::element<std::int64_t>(16, 32, 64),
                                             *rc::gen::element<std::int64_t>(16, 32, 64)};
  const int bits = *rc::gen::element(4, 8, 16, 32, 64), contiguous = *rc::gen::inRange(0, 2);
  const auto vector = *rc::gen::element<std::int64_t>(1, 2, 4), threads = *rc::gen::element<std::int64_t>(16, 32, 128);
  const TvLayout l =
      *rc::gen::inRange(0, 2) ? coalesced(extents, contiguous, vector, threads).value() : tiled_accumulator(1, 2, extents, true);
  Swizzle s{*rc::gen::inRange(0, 4), *rc::gen::inRange(3, 6), 0};
  s.shift = *rc::gen::inRange(std::max(s.bits, 1), 6);
  const int fast = *rc::gen::inRange(0, 2);
  const MemoryLayout m = dense(extents, {fast, 1 - fast}, bits, 0, s);
  const int access = *rc::gen::element(4, 8, 16);
  RC_ASSERT(conflict_ways_closed_form(l, m, access).value() == bank_conflict_ways(l, m, access));
}
}  // namespace
}  // namespace warploom::layout
