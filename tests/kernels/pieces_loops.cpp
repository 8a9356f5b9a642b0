// Pieces of kernels of loop nests (loop_*, scan_*): which roles axes have, where tiles lie, and
// reductions, products and scans on the interpreter against FP64.
#include <gtest/gtest.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "base/value_op.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "kernels/family.h"
#include "kernels/pieces/loop_kernel.h"
#include "kernels/pieces/loop_nest_tiling.h"
#include "kernels/pieces/loop_reduction.h"
#include "kernels/pieces/loop_tile.h"
#include "kernels/pieces/loop_values.h"
#include "loopnest/loop_nest.h"
#include "pieces.h"
#include "support/nets.h"
#include "support/problems.h"
#include "target/capabilities.h"

namespace warploom::kernels::direct {
namespace {
using graph::OpKind;
using test::hopper, test::Ints, test::Net;

constexpr double kAllowed = 3e-6;  // of fp32

graph::Graph transpose(int64_t rows, int64_t columns) {
  Net n;
  return n.with({n.transpose(n.x({rows, columns}), {1, 0})});
}

graph::Graph sum_of_rows(int64_t rows, int64_t columns) {
  Net n;
  const auto y =
      n.add(OpKind::ReduceSum, {n.x({rows, columns}), n.ints({1})}, {{"keepdims", int64_t{0}}});
  return n.with({y});
}

graph::Graph prefixes(int64_t rows, int64_t columns, int64_t reverse = 0) {
  Net n;
  return n.with(
      {n.add(OpKind::CumSum, {n.x({rows, columns}), n.ints({1})}, {{"reverse", reverse}})});
}

graph::Graph doubled(int64_t rows, int64_t columns) {
  Net n;
  const auto x = n.x({rows, columns});
  const auto scale = n.x({columns});  // so that the axes of x are not one
  return n.with({n.add(OpKind::Mul, {x, scale})});
}

LoopNestTiling tiling_of_graph(const graph::Graph& graph, bool gpu = true) {
  const Region region(graph, Track::fp32);
  EXPECT_EQ(region.nests().size(), 1u) << to_text(graph);
  auto tiling = tiling_of(region.nests()[0], gpu);
  EXPECT_TRUE(tiling) << to_text(graph);
  return *std::move(tiling);
}

void expect_kernel(const graph::Graph& graph, const LoopNestTiling& tiling,
                   const LoopKernelOptions& options,
                   const target::Capabilities& capabilities = hopper()) {
  Family::Programs made;
  add_loop_kernel(made, tiling, options, capabilities, "loops");
  test::expect_fp64(graph, made, kAllowed);
}

// The worked examples of loop_nest_tiling.h.
TEST(PieceLoopNestTiling, GivesAxesTheRolesOfItsWorkedExamples) {
  const LoopNestTiling turned = tiling_of_graph(transpose(45, 70));
  EXPECT_EQ(turned.roles.x, 1u);
  EXPECT_EQ(turned.roles.y, 0u);
  const LoopNestTiling sums = tiling_of_graph(sum_of_rows(33, 40));
  EXPECT_EQ(sums.roles.x, 0u);
  EXPECT_EQ(sums.roles.reduction, 1u);
  EXPECT_EQ(sums.reduced, (std::vector<bool>{false, true}));
  const LoopNestTiling scans = tiling_of_graph(prefixes(9, 512));
  EXPECT_EQ(scans.roles.x, 1u);
  EXPECT_EQ(scans.scanned, 1u);
  EXPECT_TRUE(scans.is_walked(1));
  EXPECT_FALSE(scans.is_walked(0));
}

TEST(PieceLoopNestTiling, RefusesReductionsOfReductions) {
  const Region region(test::softmax_graph(8, 64, Dtype::f32), Track::fp32);
  ASSERT_EQ(region.nests().size(), 1u);
  EXPECT_FALSE(tiling_of(region.nests()[0], true));
}

TEST(PieceLoopNestTiling, FindsTheFastestAxisAndWhatBoxesTake) {
  const LoopNestTiling turned = tiling_of_graph(transpose(45, 70));
  EXPECT_EQ(fastest(turned.nest.loads[0]), 0u);
  EXPECT_EQ(stride_along(turned.nest.loads[0], 1), 70);
  EXPECT_EQ(stride_along(turned.nest.loads[0], std::nullopt), 0);
  EXPECT_EQ(widest(turned), 45);
  EXPECT_TRUE(takes_boxes(turned, {16, 32}));
  Net n;  // windows: one dimension follows both the pixel and the place
  const auto y =
      n.add(OpKind::MaxPool, {n.x({2, 3, 40})}, {{"kernel_shape", Ints{5}}, {"pads", Ints{2, 2}}});
  const LoopNestTiling pool = tiling_of_graph(n.with({y}));
  std::vector<int64_t> tile(pool.nest.axes.size(), 1);
  tile[*pool.roles.x] = 8;
  EXPECT_TRUE(takes_boxes(pool, tile));
  tile.back() = 4;
  EXPECT_FALSE(takes_boxes(pool, tile));
}

// The worked example of loop_tile.h: y [64,1000] in tiles of 4 by 256 elements.
TEST(PieceLoopTile, LiesWhereItsWorkedExampleSays) {
  const LoopNestTiling tiling = tiling_of_graph(doubled(64, 1000));
  const LoopKernelOptions options{.extents = {4, 256}, .warps = 4};
  const auto capabilities = hopper();
  LoopTile tile(tiling, options, capabilities, "tile");
  EXPECT_EQ(tile.lines(), 16 * 4);
  EXPECT_EQ(tile.origin(0).evaluate({{"block_x", 6}}), 4);
  EXPECT_EQ(tile.origin(1).evaluate({{"block_x", 6}}), 512);
  EXPECT_EQ(tile.axes(), (std::vector<size_t>{0, 1}));
  EXPECT_EQ(tile.shape_of({true, true}), (std::vector<int64_t>{4, 256}));
  EXPECT_EQ(tile.shape_of({false, true}), (std::vector<int64_t>{1, 256}));
}

TEST(PieceLoopTile, CoversEveryElementOnceOnAGpuAndStaysInsideOnACpu) {
  for (const char* target : {"sm_90a", "cpu"}) {
    const auto capabilities = *target::capabilities_of(target);
    const LoopNestTiling tiling = tiling_of_graph(doubled(21, 100), capabilities.gpu);
    const LoopKernelOptions options{.extents = {4, 16}};
    const LoopTile tile(tiling, options, capabilities, "tile");
    std::vector<int> covered(21 * 100);
    for (int64_t block = 0; block < tile.lines(); ++block) {
      const int64_t row = tile.origin(0).evaluate({{"block_x", block}});
      const int64_t column = tile.origin(1).evaluate({{"block_x", block}});
      if (!capabilities.gpu) {
        EXPECT_LE(row + 4, 21);
        EXPECT_LE(column + 16, 100);
      }
      for (int64_t i = row; i < std::min<int64_t>(row + 4, 21); ++i)
        for (int64_t j = column; j < std::min<int64_t>(column + 16, 100); ++j)
          ++covered[static_cast<size_t>(i * 100 + j)];
    }
    EXPECT_EQ(std::ranges::count(covered, 0), 0) << target;
    if (capabilities.gpu) {
      EXPECT_EQ(std::ranges::count(covered, 1), std::ssize(covered));
    }
  }
}

TEST(PieceLoopKernel, MovesATransposeByTiles) {
  const graph::Graph graph = transpose(45, 70);
  expect_kernel(graph, tiling_of_graph(graph), {.extents = {16, 32}, .warps = 4});
}

TEST(PieceLoopKernel, TakesRowsOfATileInTurn) {
  const graph::Graph graph = doubled(30, 100);
  LoopNestTiling tiling = tiling_of_graph(graph);
  ASSERT_EQ(tiling.roles.y, 0u);
  expect_kernel(graph, tiling, {.extents = {1, 64}, .rows_in_turn = 4, .warps = 2});
}

TEST(PieceLoopValues, HoldLoadsAndExpandWhatIsSmall) {
  const LoopNestTiling tiling = tiling_of_graph(doubled(8, 64));
  const LoopKernelOptions options{.extents = {4, 64}};
  const auto capabilities = hopper();
  LoopTile tile(tiling, options, capabilities, "values");
  LoopValues values(tile);
  for (size_t v = 0; v < tiling.nest.values.size(); ++v) {
    EXPECT_FALSE(values.is_held(v));
    values.compute(v);
    EXPECT_EQ(values.is_held(v), tiling.nest.values[v].kind == Kind::load) << v;
  }
  EXPECT_EQ(values.expression_of(2).op, ValueOp::mul);
  EXPECT_EQ(values.type_of(2), Dtype::f32);
}

TEST(PieceLoopReduction, KnowsItsOperandsAndItsAccumulators) {
  const LoopNestTiling tiling = tiling_of_graph(sum_of_rows(33, 40));
  const LoopKernelOptions options{.extents = {8, 16}};
  const auto capabilities = hopper();
  LoopTile tile(tiling, options, capabilities, "reduction");
  LoopValues values(tile);
  const LoopReduction reduction(tile, values);
  ASSERT_EQ(reduction.reductions().size(), 1u);
  const size_t sum = reduction.reductions()[0];
  const int load = tiling.nest.values[sum].operands[0];
  EXPECT_TRUE(reduction.is_operand(static_cast<size_t>(load)));
  EXPECT_TRUE(reduction.varies_in_loops(static_cast<size_t>(load)));
  EXPECT_FALSE(reduction.varies_in_loops(sum));
  EXPECT_EQ(reduction.accumulated(sum), (std::vector<bool>{true, true}))
      << "an accumulator has an element for each of the tile, along the reduced axis too";
}

TEST(PieceLoopReduction, ReducesByTilesThatNeedNotDivideTheAxis) {
  const graph::Graph graph = sum_of_rows(33, 1001);
  for (const int64_t extent : {1, 16, 64})
    expect_kernel(graph, tiling_of_graph(graph), {.extents = {8, extent}, .warps = 4});
}

// 20000 equal terms, of which one chain of fp32 additions loses several times as much.
TEST(PieceLoopReduction, AddsLongSumsInShortChains) {
  const graph::Graph graph = sum_of_rows(2, 20000);
  auto inputs = test::random_inputs(graph, 1);
  float chain = 0;
  for (size_t i = 0; i < 40000; ++i)
    store_from_double(Dtype::f32, inputs[0].data(), i, 0.1);
  for (int i = 0; i < 20000; ++i)
    chain += 0.1f;
  const double lost_by_chain = std::abs(static_cast<double>(chain) / 2000 - 1);
  Family::Programs made;
  const LoopKernelOptions options{.extents = {1, 1}};
  add_loop_kernel(made, tiling_of_graph(graph), options, hopper(), "sums");
  test::expect_fp64(graph, made, lost_by_chain / 4, inputs);
}

TEST(PieceLoopProduct, MultipliesBlocksOfAnyDepth) {
  const auto cpu = *target::capabilities_of("cpu");
  const graph::Graph graph = test::matmul_graph({24, 40, 37}, Dtype::f32);
  const LoopNestTiling tiling = tiling_of_graph(graph, false);
  ASSERT_TRUE(tiling.product);
  EXPECT_EQ(tiling.product->taps, 1);
  for (const int64_t depth : {8, 37}) {
    LoopKernelOptions options{.extents = std::vector<int64_t>(tiling.nest.axes.size(), 1),
                              .multiplies = true,
                              .block_k = depth};
    options.extents[*tiling.roles.y] = 8;
    options.extents[*tiling.roles.x] = 16;
    expect_kernel(graph, tiling, options, cpu);
  }
}

TEST(PieceLoopProduct, CopiesTheWindowsOfAConvolutionTapAfterTap) {
  const auto cpu = *target::capabilities_of("cpu");
  Net n;
  const auto y =
      n.add(OpKind::Conv, {n.x({1, 6, 12, 16}), n.x({8, 6, 3, 3})}, {{"pads", Ints{1, 1, 1, 1}}});
  const graph::Graph graph = n.with({y});
  const LoopNestTiling tiling = tiling_of_graph(graph, false);
  ASSERT_TRUE(tiling.product);
  EXPECT_EQ(tiling.product->taps, 9);
  for (const int64_t rows : {1, 2}) {
    LoopKernelOptions options{.extents = std::vector<int64_t>(tiling.nest.axes.size(), 1),
                              .multiplies = true,
                              .rows_per_product = rows,
                              .block_k = 3};
    options.extents[*tiling.roles.y] = 4;
    options.extents[*tiling.roles.x] = 16;
    expect_kernel(graph, tiling, options, cpu);
  }
}

TEST(PieceScanWalk, CarriesPrefixesFromTileToTileEitherWay) {
  for (const int64_t reverse : {0, 1}) {
    const graph::Graph graph = prefixes(5, 333, reverse);
    const LoopNestTiling tiling = tiling_of_graph(graph);
    EXPECT_EQ(tiling.reverse, reverse != 0);
    for (const int64_t extent : {64, 512})
      expect_kernel(graph, tiling, {.extents = {1, extent}, .warps = 2});
  }
}

TEST(PieceScanLookBack, AddsTheAggregatesOfTheTilesBeforeInTheRound) {
  for (const int64_t reverse : {0, 1}) {
    const graph::Graph graph = prefixes(3, 1000, reverse);  // rounds of 4 tiles, the last in part
    for (const int64_t ctas : {2, 4}) {
      const LoopKernelOptions options{.extents = {1, 64}, .ctas_per_scan = ctas, .warps = 2};
      expect_kernel(graph, tiling_of_graph(graph), options);
    }
  }
}
}  // namespace
}  // namespace warploom::kernels::direct
