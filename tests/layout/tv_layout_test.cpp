#include "layout/tv_layout.h"
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>
#include "base/error.h"
#include "tv_layouts.h"

namespace warploom::layout {
namespace {
using Modes = std::vector<TvMode>;

TEST(TvLayout, MmaAccumulatorIsWhereThePtxManualSaysItIs) {
  const TvLayout l = mma_accumulator();
  EXPECT_EQ(l.threads(), 32);
  EXPECT_EQ(l.values(), 4);
  for (int64_t t = 0; t < 32; ++t) {
    for (int64_t v = 0; v < 4; ++v)
      EXPECT_EQ(l.coord(t, v), (Coord{t / 4 + v / 2 * 8, t % 4 * 2 + v % 2}));
  }
}

TEST(TvLayout, ExactMeansEachElementEquallyOften) {
  EXPECT_TRUE(mma_accumulator().is_exact());
  EXPECT_TRUE((TvLayout{{4}, {{4, {1}}, {2, {0}}}, {}}.is_exact()));   // each twice
  EXPECT_FALSE((TvLayout{{4}, {{2, {1}}, {2, {1}}}, {}}.is_exact()));  // 0 once, 1 twice
  EXPECT_FALSE((TvLayout{{4}, {{4, {2}}}, {}}.is_exact()));            // falls outside
  EXPECT_FALSE((TvLayout{{4, 2}, {{4, {1, 0}}}, {}}.is_exact()));      // misses a column
  EXPECT_FALSE((TvLayout{{2, 2}, {{4, {0, 1}}}, {}}.is_exact()));      // runs out of a row
}

TEST(TvLayout, DigitsOfAThreadsNumberAreCutAtTheEdgeOfAWarp) {
  const TvLayout l{{256}, {{1, {7}}, {8, {1}}, {16, {8}}}, {}};
  const auto of = [](const std::vector<ThreadDigit>& digits) {
    std::vector<std::array<int64_t, 3>> out;
    for (const ThreadDigit& digit : digits)
      out.push_back({digit.below, digit.extent, digit.step[0]});
    return out;
  };
  EXPECT_EQ(of(thread_digits(l)), (std::vector<std::array<int64_t, 3>>{{1, 8, 1}, {8, 16, 8}}));
  EXPECT_EQ(of(thread_digits(l, true)),
            (std::vector<std::array<int64_t, 3>>{{1, 8, 1}, {8, 4, 8}, {32, 4, 32}}));
}

TEST(TvLayout, CoalesceExample) {
  const TvLayout l{{8, 8}, {{2, {1, 0}}, {4, {2, 0}}, {1, {5, 5}}}, {{2, {0, 1}}, {4, {0, 2}}}};
  EXPECT_EQ(to_string(coalesce(l)), "tile 8x8 thread [8:(1,0)] value [8:(0,1)]");
}

TEST(TvLayout, CoalescedPutsNeighbouringThreadsOnNeighbouringVectors) {
  const TvLayout l = coalesced({64, 32}, 1, 4, 128).value();
  EXPECT_EQ(to_string(l), "tile 64x32 thread [8:(0,4)] [16:(1,0)] value [4:(0,1)] [4:(16,0)]");
  EXPECT_TRUE(l.is_exact());
  EXPECT_EQ(l.threads() * l.values(), 64 * 32);
}

TEST(TvLayout, CoalescedReplicatesWhenTheTileIsSmall) {
  const TvLayout l = coalesced({1, 128}, 1, 4, 128).value();
  EXPECT_EQ(l.threads(), 128);
  EXPECT_TRUE(l.is_exact());
  EXPECT_EQ(l.coord(32, 0), l.coord(0, 0));
}

TEST(TvLayout, CoalescedRefusesWhatCannotBeSpread) {
  EXPECT_EQ(coalesced({8, 30}, 1, 4, 32).error().code, ErrorCode::kLayout);
  EXPECT_EQ(coalesced({3, 81}, 1, 1, 64).error().code, ErrorCode::kLayout);
  EXPECT_EQ(coalesced({8, 8}, 2, 4, 32).error().code, ErrorCode::kLayout);
  EXPECT_EQ(coalesced({8, 8}, 1, 0, 32).error().code, ErrorCode::kLayout);
}

TEST(TvLayout, ReduceDropsValuesAndReplicatesThreads) {
  const TvLayout l = reduce(mma_accumulator(), 1).value();
  EXPECT_EQ(to_string(l), "tile 16x1 thread [4:(0,0)] [8:(1,0)] value [2:(8,0)]");
  EXPECT_TRUE(l.is_exact());
}

TEST(TvLayout, ReduceRefusesADiagonalMode) {
  const TvLayout diagonal{{4, 4}, {{4, {1, 1}}}, {}};
  EXPECT_EQ(reduce(diagonal, 0).error().code, ErrorCode::kLayout);
}

TEST(TvLayout, BroadcastOperandDropsItsModes) {
  const TvLayout compact = broadcast_operand(mma_accumulator(), {1, 8});
  EXPECT_EQ(to_string(compact), "tile 1x8 thread [4:(0,2)] [8:(0,0)] value [2:(0,1)]");
}

TEST(TvLayout, OperandOfTheTilesOwnShapeIsUnchanged) {
  EXPECT_EQ(broadcast_operand(mma_accumulator(), {16, 8}), mma_accumulator());
}

// Brute force, by the definitions in the header.
std::map<Coord, int> hits(const TvLayout& l) {
  std::map<Coord, int> out;
  for (int64_t t = 0; t < l.threads(); ++t) {
    for (int64_t v = 0; v < l.values(); ++v)
      ++out[l.coord(t, v)];
  }
  return out;
}

RC_GTEST_PROP(TvLayoutProperty, ExactByEnumeration, ()) {
  const TvLayout l = random_tv_layout();
  const auto all = hits(l);
  bool equal = static_cast<int64_t>(all.size()) == l.tile[0] * l.tile[1];
  for (const auto& [c, n] : all)
    equal = equal && n == all.begin()->second && c[0] < l.tile[0] && c[1] < l.tile[1];
  RC_CLASSIFY(equal, "exact");
  RC_ASSERT(l.is_exact() == equal);
}

RC_GTEST_PROP(TvLayoutProperty, CoalesceKeepsTheMap, ()) {
  const TvLayout l = random_tv_layout();
  const TvLayout c = coalesce(l);
  RC_ASSERT(c.threads() == l.threads() && c.values() == l.values());
  for (int64_t t = 0; t < l.threads(); ++t) {
    for (int64_t v = 0; v < l.values(); ++v)
      RC_ASSERT(c.coord(t, v) == l.coord(t, v));
  }
}

RC_GTEST_PROP(TvLayoutProperty, CoalescedIsExactWheneverItExists, ()) {
  const std::vector<int64_t> tile = {*rc::gen::inRange<int64_t>(1, 40),
                                     *rc::gen::inRange<int64_t>(1, 40)};
  const int contiguous = *rc::gen::inRange(0, 2);
  const auto vector = *rc::gen::element<int64_t>(1, 2, 4);
  const auto threads = *rc::gen::element<int64_t>(1, 2, 8, 12, 32, 64);
  const auto l = coalesced(tile, contiguous, vector, threads);
  RC_CLASSIFY(l.has_value());
  if (!l) return;
  RC_ASSERT(l->threads() == threads);
  RC_ASSERT(l->is_exact());
}

RC_GTEST_PROP(TvLayoutProperty, ReductionVisitsWhatItsInputVisits, ()) {
  const TvLayout l = random_tv_layout();
  const int axis = *rc::gen::inRange(0, 2);
  const auto r = reduce(l, axis);
  RC_CLASSIFY(r.has_value());
  if (!r) return;
  for (int64_t t = 0; t < l.threads(); ++t) {
    std::set<Coord> want;
    std::set<Coord> got;
    for (int64_t v = 0; v < l.values(); ++v) {
      Coord c = l.coord(t, v);
      c[static_cast<size_t>(axis)] = 0;
      want.insert(c);
    }
    for (int64_t v = 0; v < r->values(); ++v)
      got.insert(r->coord(t, v));
    RC_ASSERT(want == got);
  }
}
}  // namespace
}  // namespace warploom::layout
