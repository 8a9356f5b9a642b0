// Pieces of kernels of rows (row_*): where tiles lie, what terms are bound to, and each way over a
// row on the interpreter against FP64.
#include <gtest/gtest.h>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <vector>
#include "base/dtype.h"
#include "graph/graph.h"
#include "graph/track.h"
#include "kernels/family.h"
#include "kernels/kernel_builder.h"
#include "kernels/pieces/row_chunked_softmax.h"
#include "kernels/pieces/row_kernel.h"
#include "kernels/pieces/row_pipeline.h"
#include "kernels/pieces/row_split_squares.h"
#include "kernels/pieces/row_terms.h"
#include "kernels/pieces/row_tiles.h"
#include "loopnest/row_reduction.h"
#include "pieces.h"
#include "row_nets.h"
#include "support/nets.h"
#include "support/problems.h"
#include "tile/build.h"
#include "tile/index.h"
#include "tile/program.h"

namespace warploom::kernels {
namespace {
using graph::OpKind;
using test::Net;

constexpr double kAllowed = 3e-6;  // of fp32

RowReduction reduction_of(const graph::Graph& graph) {
  auto rows = loopnest::read_rows(Region(graph, Track::fp32).nests());
  EXPECT_TRUE(rows) << to_text(graph);
  return rows.value_or(RowReduction{});
}

// Options of a kernel that takes one row at a time, so many elements of it.
RowKernelOptions tiles_of(const RowReduction& rows, int64_t elements, int64_t ctas_per_row = 1) {
  RowKernelOptions options{.extents = std::vector<int64_t>(rows.nest.axes.size() + 1, 1),
                           .ctas_per_row = ctas_per_row};
  options.extents[rows.row.back()] = elements;
  options.threads = 128;
  return options;
}

using Compute = std::function<void(RowKernel&)>;

Family::Programs kernel_of(const RowReduction& rows, const RowKernelOptions& options,
                           const Compute& compute) {
  RowKernel kernel(rows, options);
  tile::Builder& b = kernel.tiles.b;
  const int64_t ctas = options.ctas_per_row;
  b.grid(kernel.tiles.row_groups() * ctas).warps(4);
  if (options.exchange_in_memory)
    b.cooperative();
  else if (ctas > 1)
    b.cluster(ctas);
  kernel.tiles.go_to_rows(tile::block(0) / ctas);
  compute(kernel);
  Family::Programs made;
  kernel.tiles.draft.finish(made);
  return made;
}

graph::Graph sum_of_rows(int64_t count, int64_t size) {
  Net n;
  return n.with({test::row_forms::reduce(n, OpKind::ReduceSum, n.x({count, size}), {1})});
}

graph::Graph layer_norm(int64_t count, int64_t size) {
  Net n;
  const auto x = test::normalized(n, n.x({count, size}), {1});
  return n.with({test::row_forms::scale(n, x, {size})});
}

// The worked example of row_tiles.h: rows of 4096 elements in tiles of 512 by 2 CTAs.
TEST(PieceRowTiles, LieWhereTheirWorkedExampleSays) {
  const RowReduction rows = reduction_of(test::softmax_graph(6, 4096, Dtype::f32));
  RowTiles tiles(rows, tiles_of(rows, 512, 2));
  const size_t last = tiles.last_axis();
  EXPECT_EQ(tiles.tile_count(last), 4);
  EXPECT_EQ(tiles.tiles_of_a_row(), 4);
  EXPECT_EQ(tiles.row_groups(), 6);
  EXPECT_EQ(tiles.row_extent(), 512);
  tiles.go_to_rows(5);
  for (const int64_t rank : {0, 1}) {
    EXPECT_EQ(tiles.start(last).evaluate({{"cluster_rank", rank}}), 2048 * rank);
    tiles.go_to_tile(3);
    EXPECT_EQ(tiles.at().origin[last].evaluate({{"cluster_rank", rank}}), 2048 * rank + 3 * 512);
    tiles.go_to_first_tile();
    EXPECT_EQ(tiles.at().origin[last].evaluate({{"cluster_rank", rank}}), 2048 * rank);
  }
  EXPECT_EQ(tiles.at().origin[rows.outer[0]].constant(), 5);
}

// How often each element of a row, and past its end, is in a tile of one of its CTAs.
std::vector<int> times_covered(RowTiles& tiles, int64_t ctas) {
  const int64_t extent = tiles.row_extent();
  std::vector<int> covered(static_cast<size_t>(ctas * tiles.tiles_of_a_row() * extent));
  tiles.go_to_rows(1);
  for (int64_t number = 0; number < tiles.tiles_of_a_row(); ++number) {
    tiles.go_to_tile(number);
    const Index& origin = tiles.at().origin[tiles.last_axis()];
    for (int64_t rank = 0; rank < ctas; ++rank) {
      const int64_t first = origin.evaluate({{"cluster_rank", rank}});
      for (int64_t i = first; i < first + extent; ++i)
        ++covered.at(static_cast<size_t>(i));
    }
  }
  return covered;
}

TEST(PieceRowTiles, CoverEveryElementOfARowOnce) {
  for (const int64_t size : {1000, 1024, 1025})
    for (const int64_t ctas : {1, 2, 3}) {
      const RowReduction rows = reduction_of(test::softmax_graph(2, size, Dtype::f32));
      RowTiles tiles(rows, tiles_of(rows, 64, ctas));
      const std::vector<int> covered = times_covered(tiles, ctas);
      EXPECT_GE(std::ssize(covered), size);
      EXPECT_EQ(std::ranges::count(covered, 1), std::ssize(covered)) << size << " by " << ctas;
    }
}

TEST(PieceRowTiles, RegistersAreAsLargeAsTheTileWhereTheirValueVaries) {
  const RowReduction rows = reduction_of(test::softmax_graph(6, 4096, Dtype::f32));
  RowKernelOptions options = tiles_of(rows, 512);
  options.extents[rows.tiled_outer] = 4;
  RowTiles tiles(rows, options);
  const TensorId tile = tiles.tile_reg("x");
  const TensorId scalar = tiles.scalar("top");
  EXPECT_EQ(tiles.tile_reg("x"), tile) << "tensors of the same name are one";
  const tile::Program program = tiles.b.finish();
  EXPECT_EQ(program.tensor(tile).shape, (std::vector<int64_t>{4, 512}));
  EXPECT_EQ(program.tensor(scalar).shape, (std::vector<int64_t>{4, 1}));
}

TEST(PieceRowTerms, ForgetWhatABodyBoundAndComputeATermOnce) {
  const RowReduction rows = reduction_of(test::softmax_graph(2, 64, Dtype::f32));
  RowKernel kernel(rows, tiles_of(rows, 64));
  kernel.tiles.go_to_rows(0);
  RowTerms& terms = kernel.terms;
  terms.with_own_bindings([&] {
    EXPECT_FALSE(terms.is_bound(0));
    const Value first = terms.compute(0);
    EXPECT_TRUE(terms.is_bound(0));
    EXPECT_EQ(terms.compute(0).tensor, first.tensor);
  });
  EXPECT_FALSE(terms.is_bound(0));
}

TEST(PieceRowTerms, NameTheLoadsThatTheLastPassMakesAnew) {
  const RowReduction rows = reduction_of(layer_norm(2, 64));
  RowKernel kernel(rows, tiles_of(rows, 64));
  const size_t last = rows.passes.size() - 1;
  const std::vector<int> loads = kernel.terms.loads_of_last_pass(last - 1);
  EXPECT_EQ(loads.size(), 2u) << "scale and bias; what is normalized was kept";
}

TEST(PieceRowAllReduce, SumsRowsOfOneCtaOfAClusterAndThroughMemory) {
  const graph::Graph graph = sum_of_rows(3, 1000);
  const RowReduction rows = reduction_of(graph);
  for (const int64_t ctas : {1, 2, 4})
    for (const bool in_memory : {false, true}) {
      if (in_memory && ctas == 1) continue;
      RowKernelOptions options = tiles_of(rows, 1024 / ctas, ctas);
      options.exchange_in_memory = in_memory;
      test::expect_fp64(graph, kernel_of(rows, options, compute_in_registers), kAllowed);
    }
}

TEST(PieceRowAllReduce, ExchangesEveryReductionOfARowInAPlaceOfItsOwn) {
  const graph::Graph graph = layer_norm(3, 500);
  const RowReduction rows = reduction_of(graph);
  RowKernelOptions options = tiles_of(rows, 256, 2);
  options.exchange_in_memory = true;
  const Family::Programs made = kernel_of(rows, options, compute_in_registers);
  EXPECT_EQ(made.workspaces.size(), 2u) << "parts and flags";
  test::expect_fp64(graph, made, kAllowed);
}

// A row whose first half, one CTA's part, is all -infinity, and one that is ordinary.
TEST(PieceRowSplitSoftmax, RescalesPartsOfARowByWhatTheirMaximaDiffer) {
  constexpr int64_t kSize = 500;
  const graph::Graph graph = test::softmax_graph(2, kSize, Dtype::f32);
  const RowReduction rows = reduction_of(graph);
  const RowKernelOptions options = tiles_of(rows, 256, 2);
  RowKernel kernel(rows, options);
  EXPECT_TRUE(kernel.split_softmax);
  auto inputs = test::random_inputs(graph, 1, 20);
  for (size_t i = 0; i < kSize / 2 + 6; ++i)
    store_from_double(Dtype::f32, inputs[0].data(), i, -HUGE_VAL);
  test::expect_fp64(graph, kernel_of(rows, options, compute_in_registers), kAllowed, inputs);
}

TEST(PieceRowSplitSoftmax, ServesRowsThatCtasOfAClusterShareAlone) {
  const RowReduction rows = reduction_of(test::softmax_graph(2, 512, Dtype::f32));
  EXPECT_FALSE(RowKernel(rows, tiles_of(rows, 512)).split_softmax);
  RowKernelOptions in_memory = tiles_of(rows, 256, 2);
  in_memory.exchange_in_memory = true;
  EXPECT_FALSE(RowKernel(rows, in_memory).split_softmax);
  const RowReduction sums = reduction_of(sum_of_rows(2, 512));
  EXPECT_FALSE(RowKernel(sums, tiles_of(sums, 256, 2)).split_softmax);
}

TEST(PieceRowSplitSquares, ServesEqualPartsThatKeepTheirRowAlone) {
  const RowReduction even = reduction_of(layer_norm(2, 256));
  const RowReduction uneven = reduction_of(layer_norm(2, 250));
  RowKernel shared(even, tiles_of(even, 64, 2));
  EXPECT_TRUE(RowSplitSquares(shared, true));
  EXPECT_FALSE(RowSplitSquares(shared, false));
  RowKernel ragged(uneven, tiles_of(uneven, 64, 2));
  EXPECT_FALSE(RowSplitSquares(ragged, true));
  RowKernel alone(even, tiles_of(even, 64));
  EXPECT_FALSE(RowSplitSquares(alone, true));
}

// Squares of differences to each part's own mean, where the means of parts lie far apart.
TEST(PieceRowSplitSquares, AddsHowFarTheMeansOfPartsLieFromTheRows) {
  const graph::Graph graph = layer_norm(2, 256);
  const RowReduction rows = reduction_of(graph);
  auto inputs = test::random_inputs(graph, 1);
  for (size_t i = 0; i < 128; ++i) {
    const double x = load_as_double(Dtype::f32, inputs[0].data(), i);
    store_from_double(Dtype::f32, inputs[0].data(), i, x + 100);
  }
  for (const bool in_memory : {false, true}) {
    RowKernelOptions options = tiles_of(rows, 64, 2);
    options.exchange_in_memory = in_memory;
    const auto keep = [](RowKernel& kernel) { compute_in_passes(kernel, true); };
    test::expect_fp64(graph, kernel_of(rows, options, keep), kAllowed, inputs);
  }
}

TEST(PieceRowInPasses, ComputesRowsThatItKeepsUnrollsOrReadsAgain) {
  for (const graph::Graph& graph : {layer_norm(3, 300), test::softmax_graph(3, 300, Dtype::f32)}) {
    const RowReduction rows = reduction_of(graph);
    for (const bool keeps : {false, true})
      for (const bool unrolled : {false, true}) {
        RowKernelOptions options = tiles_of(rows, 64);
        options.unrolled = unrolled;
        const auto compute = [&](RowKernel& kernel) { compute_in_passes(kernel, keeps); };
        test::expect_fp64(graph, kernel_of(rows, options, compute), kAllowed);
      }
  }
}

TEST(PieceRowOnline, FindsMaximumAndSumOfExponentialsInOneWalk) {
  const graph::Graph graph = test::softmax_graph(3, 300, Dtype::f32, true);
  const RowReduction rows = reduction_of(graph);
  ASSERT_TRUE(rows.online_softmax);
  const auto compute = [](RowKernel& kernel) { compute_in_passes(kernel, false); };
  test::expect_fp64(graph, kernel_of(rows, tiles_of(rows, 64), compute), kAllowed);
}

TEST(PieceRowOnline, FindsTheFirstIndexOfTheGreatestInOneWalk) {
  Net n;
  const auto y = n.add(OpKind::ArgMax, {n.x({4, 300})}, {{"axis", int64_t{1}}});
  const graph::Graph graph = n.with({y});
  const RowReduction rows = reduction_of(graph);
  ASSERT_GE(rows.index_of_extreme, 0);
  auto inputs = test::random_inputs(graph, 1);
  for (const size_t i : {70, 200, 299})  // alike: the first counts
    store_from_double(Dtype::f32, inputs[0].data(), i, 9);
  const auto compute = [](RowKernel& kernel) { compute_in_passes(kernel, false); };
  test::expect_fp64(graph, kernel_of(rows, tiles_of(rows, 64), compute), 1e-9, inputs);
}

TEST(PieceRowChunkedSoftmax, ServesSoftmaxesAndKeepsTheirExponentialsOrNot) {
  const graph::Graph graph = test::softmax_graph(3, 300, Dtype::f32);
  const RowReduction rows = reduction_of(graph);
  EXPECT_TRUE(RowChunkedSoftmax::serves(rows));
  EXPECT_FALSE(RowChunkedSoftmax::serves(reduction_of(layer_norm(2, 64))));
  for (const bool keeps : {false, true}) {
    const auto compute = [&](RowKernel& kernel) { RowChunkedSoftmax(kernel, keeps).compute_row(); };
    test::expect_fp64(graph, kernel_of(rows, tiles_of(rows, 64), compute), kAllowed);
  }
}

// A kernel whose `workers` CTAs take one row after another through a pipeline.
Family::Programs ring_kernel(const RowReduction& rows, int64_t elements, int64_t workers,
                             int64_t stages) {
  RowKernel kernel(rows, tiles_of(rows, elements));
  tile::Builder& b = kernel.tiles.b;
  b.grid(workers).warps(4);
  const auto load = static_cast<size_t>(*loads_that_fill_tiles(rows).begin());
  RowPipeline pipeline(kernel, {load, stages, workers, 100000});
  pipeline.start(tile::block(0));
  const int64_t groups = kernel.tiles.row_groups();
  b.for_("r", tile::block(0), groups, workers, [&](const Index& group) {
    kernel.tiles.go_to_rows(group);
    compute_in_registers(kernel);
  });
  Family::Programs made;
  kernel.tiles.draft.finish(made);
  return made;
}

TEST(PieceRowPipeline, FeedsRowsThroughAnyNumberOfStages) {
  const graph::Graph graph = test::softmax_graph(7, 256, Dtype::f32);  // rows end with tiles
  const RowReduction rows = reduction_of(graph);
  EXPECT_EQ(loads_that_fill_tiles(rows), std::set<int>{0});
  for (const int64_t stages : {1, 2, 3, 5}) {
    const Family::Programs made = ring_kernel(rows, 256, 2, stages);
    EXPECT_EQ(made.programs[0].pipelines[0].stages, stages);
    test::expect_fp64(graph, made, kAllowed);
  }
}

TEST(PieceRowPipeline, KeepsWhatIsTheSameForEveryRowWhereACtaHasRowsEnough) {
  const graph::Graph graph = layer_norm(9, 250);
  const RowReduction rows = reduction_of(graph);
  const auto shared_tensors = [](const Family::Programs& made) {
    return std::ranges::count(made.programs[0].tensors, tile::Scope::shared, &tile::Tensor::scope);
  };
  const Family::Programs many = ring_kernel(rows, 256, 2, 3);
  const Family::Programs few = ring_kernel(rows, 256, 4, 3);
  EXPECT_EQ(shared_tensors(many), 3) << "the pipeline's rows, scale and bias";
  EXPECT_EQ(shared_tensors(few), 1) << "fewer than four rows a CTA";
  test::expect_fp64(graph, many, kAllowed);
  test::expect_fp64(graph, few, kAllowed);
}
}  // namespace
}  // namespace warploom::kernels
