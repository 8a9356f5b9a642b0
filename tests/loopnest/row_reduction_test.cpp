// Which nests are row reductions, their passes, and what the passes keep.
#include "loopnest/row_reduction.h"
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>
#include "base/value_op.h"
#include "graph/graph.h"
#include "loopnest/loop_nest.h"
#include "support/nets.h"

namespace warploom::loopnest {
namespace {
using graph::OpKind;
using test::Net;

std::optional<RowReduction> rows_of(Net& net, graph::TensorId output) {
  return read_rows(nests_of(net.with({output})));
}

TEST(RowReduction, IsNoContraction) {
  Net n;
  const auto product = n.add(OpKind::Mul, {n.x({8, 1, 16}), n.x({4, 16})});
  EXPECT_FALSE(rows_of(n, n.add(OpKind::ReduceSum, {product, n.ints({2})})));
}

TEST(RowReduction, OfALogSoftmaxKeepsTheRowInOneSet) {
  Net n;
  const auto rows = rows_of(n, n.add(OpKind::LogSoftmax, {n.x({64, 1000})}));
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->row_size(), 1000);
  EXPECT_EQ(rows->row_count(), 64);
  EXPECT_FALSE(rows->interleaved);
  ASSERT_EQ(rows->passes.size(), 3u);
  const RowTerm& top = rows->term(rows->passes[0].reduces.at(0));
  EXPECT_EQ(top.op, ValueOp::max);
  EXPECT_FALSE(top.along_row);
  EXPECT_EQ(rows->term(rows->passes[1].reduces.at(0)).op, ValueOp::add);
  // x in set 0, then x - max in its place.
  EXPECT_EQ(rows->passes[0].kept, (std::map<int, int>{{top.operands[0], 0}}));
  ASSERT_EQ(rows->passes[1].kept.size(), 1u);
  const auto [difference, set] = *rows->passes[1].kept.begin();
  EXPECT_EQ(rows->term(difference).op, ValueOp::sub);
  EXPECT_EQ(set, 0);
  EXPECT_EQ(rows->kept_sets(), 1);
  EXPECT_TRUE(rows->online_softmax);
}

// A sum in bf16 that is stored as f32 is rounded by a statement, one stored as bf16 by its store.
TEST(RowReduction, RoundsWhatNoStoreRounds) {
  const auto roundings = [](bool back) {
    Net n;
    auto y = n.add(OpKind::ReduceSum, {n.x({8, 64}), n.ints({1})});
    y = n.add(OpKind::Cast, {y}, {{"to", int64_t{16}}});
    if (back) y = n.add(OpKind::Cast, {y}, {{"to", int64_t{1}}});
    const auto rows = rows_of(n, y);
    return rows ? std::ranges::count(rows->terms, Kind::round, &RowTerm::kind) : -1;
  };
  EXPECT_EQ(roundings(false), 0);
  EXPECT_EQ(roundings(true), 1);
}

TEST(RowReduction, PadsWithWhatNeedsTheFewestMasks) {
  Net largest;
  const auto top =
      rows_of(largest, largest.add(OpKind::ReduceMax, {largest.x({5, 77}), largest.ints({1})}));
  ASSERT_TRUE(top);
  EXPECT_EQ(top->padding_values, std::vector<double>{-HUGE_VAL});
  Net sum;
  const auto total = rows_of(sum, sum.add(OpKind::ReduceSum, {sum.x({5, 77}), sum.ints({1})}));
  ASSERT_TRUE(total);
  EXPECT_EQ(total->padding_values, std::vector<double>{0});
  // Whatever x is past the end, x + 1 is neutral for a maximum or for a sum, but not for both.
  Net both;
  const auto x = both.add(OpKind::Add, {both.x({5, 77}), both.number(1)});
  const auto of = [&](OpKind op) { return both.add(op, {x, both.ints({1})}); };
  const auto masked =
      rows_of(both, both.add(OpKind::Sub, {of(OpKind::ReduceMax), of(OpKind::ReduceSum)}));
  ASSERT_TRUE(masked);
  EXPECT_EQ(std::ranges::count_if(masked->terms, &RowTerm::masked), 1);
}

TEST(RowReduction, OfRowsBesideEachOtherInMemoryTakesSeveral) {
  Net n;
  const auto rows = rows_of(n, n.add(OpKind::Softmax, {n.x({33, 40})}, {{"axis", int64_t{0}}}));
  ASSERT_TRUE(rows);
  EXPECT_TRUE(rows->interleaved);
  EXPECT_EQ(rows->dims, (std::vector<size_t>{rows->row[0], rows->tiled_outer}));
}

TEST(RowReduction, FindsPairsThatOnePassComputes) {
  Net place;
  const auto first =
      rows_of(place, place.add(OpKind::ArgMax, {place.x({9, 130})}, {{"axis", int64_t{1}}}));
  ASSERT_TRUE(first);
  ASSERT_GE(first->index_of_extreme, 0);
  EXPECT_EQ(first->term(first->index_of_extreme).kind, Kind::index);
  Net norm;
  const auto x = norm.x({6, 500});
  const auto mean = norm.add(OpKind::ReduceMean, {x, norm.ints({1})});
  const auto off = norm.add(OpKind::Sub, {x, mean});
  const auto squares = norm.add(OpKind::Mul, {off, off});
  const auto spread = rows_of(
      norm, norm.add(OpKind::Div, {off, norm.add(OpKind::ReduceMean, {squares, norm.ints({1})})}));
  ASSERT_TRUE(spread);
  EXPECT_TRUE(spread->centered_squares);
  EXPECT_FALSE(spread->online_softmax);
}
}  // namespace
}  // namespace warploom::loopnest
