#include <gtest/gtest.h>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>
#include "layout/tv_layout.h"
#include "synth/solve.h"
#include "target/instruction.h"

namespace warploom::synth {
namespace {
using layout::TvLayout;

int64_t applied(const std::vector<int64_t>& columns, int64_t x) {
  int64_t sum = 0;
  for (size_t b = 0; b < columns.size(); ++b)
    if (x >> b & 1) sum ^= columns[b];
  return sum;
}

// Every thread finds in the lane and register named what its own layout asks for.
void expect_right(const TvLayout& from, const TvLayout& to, const WarpShufflePlan& exchange) {
  for (int64_t t = 0; t < to.threads(); ++t)
    for (int64_t v = 0; v < to.values(); ++v) {
      const int64_t unit = v / exchange.unit;
      const int64_t lane =
          applied(exchange.lane_of_thread, t) ^ applied(exchange.lane_of_unit, unit);
      const int64_t pick =
          applied(exchange.pick_of_thread, t) ^ applied(exchange.pick_of_unit, unit);
      EXPECT_EQ(from.coord(t / 32 * 32 + lane, pick * exchange.unit + v % exchange.unit),
                to.coord(t, v))
          << to_string(from) << " to " << to_string(to) << " thread " << t << " value " << v;
    }
}

TEST(WarpShufflePlan, NeighboursBecomeStridedByTwoShufflesAValue) {
  const TvLayout from{{1, 8}, {{4, {0, 2}}, {8, {0, 0}}}, {{2, {0, 1}}}};
  const TvLayout to{{1, 8}, {{4, {0, 1}}, {8, {0, 0}}}, {{2, {0, 4}}}};
  const auto exchange = warp_shuffle_plan(from, to, 32);
  ASSERT_TRUE(exchange.has_value());
  EXPECT_EQ(exchange->shuffles(), 4);
  expect_right(from, to, *exchange);
}

TEST(WarpShufflePlan, NarrowNeighboursMoveTogether) {
  const TvLayout from{{8, 8}, {{4, {0, 2}}, {8, {1, 0}}}, {{2, {0, 1}}}};
  const TvLayout to{{8, 8}, {{8, {1, 0}}, {4, {0, 2}}}, {{2, {0, 1}}}};
  const auto exchange = warp_shuffle_plan(from, to, 16);
  ASSERT_TRUE(exchange.has_value());
  EXPECT_EQ(exchange->unit, 2);
  EXPECT_EQ(exchange->shuffles(), 1);
  expect_right(from, to, *exchange);
}

TEST(WarpShufflePlan, AnotherOrderOfAThreadsOwnValuesIsFree) {
  const TvLayout from = target::instructions_of("sm_80")[0].c;
  TvLayout to = from;
  std::swap(to.value[0], to.value[1]);
  const auto exchange = warp_shuffle_plan(from, to, 32);
  ASSERT_TRUE(exchange.has_value());
  EXPECT_EQ(exchange->shuffles(), 0);
  expect_right(from, to, *exchange);
}

TEST(WarpShufflePlan, ElementsThatChangeWarpsHaveNone) {
  const auto rows = layout::coalesced({64, 64}, 1, 4, 128);
  const auto columns = layout::coalesced({64, 64}, 0, 4, 128);
  EXPECT_FALSE(warp_shuffle_plan(*rows, *columns, 32).has_value());
}

TEST(WarpShufflePlan, FragmentsAndVectorsOfAWarpReachEachOther) {
  std::vector<TvLayout> layouts = {
      target::instructions_of("sm_80")[0].c,
      flipped(flipped(target::instructions_of("sm_80")[0].c, true), true)};
  for (const int vector : {1, 2, 4})
    for (const int contiguous : {0, 1})
      layouts.push_back(*layout::coalesced({16, 8}, contiguous, vector, 32));
  int found = 0;
  for (const TvLayout& from : layouts)
    for (const TvLayout& to : layouts)
      for (const int bits : {8, 16, 32})
        if (const auto exchange = warp_shuffle_plan(from, to, bits)) {
          expect_right(from, to, *exchange);
          ++found;
        }
  EXPECT_EQ(found, 8 * 8 * 3);
}

TEST(WarpShufflePlan, OfReplicasTheNearestIsRead) {
  const TvLayout from{{1, 4}, {{4, {0, 1}}, {8, {0, 0}}}, {}};
  const TvLayout to{{1, 4}, {{32, {0, 0}}}, {{4, {0, 1}}}};
  const auto exchange = warp_shuffle_plan(from, to, 32);
  ASSERT_TRUE(exchange.has_value());
  expect_right(from, to, *exchange);
  for (size_t bit = 2; bit < 5; ++bit)
    EXPECT_EQ(exchange->lane_of_thread[bit], 1 << bit);
}
}  // namespace
}  // namespace warploom::synth
