// Pieces that say which CTA computes what, by enumeration: tile_scheduler and wgmma_tiles.
#include <gtest/gtest.h>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "graph/graph.h"
#include "kernels/config/configs.h"
#include "kernels/family.h"
#include "kernels/kernel_builder.h"
#include "kernels/pieces/tile_scheduler.h"
#include "kernels/pieces/wgmma_product.h"
#include "kernels/pieces/wgmma_tiles.h"
#include "loopnest/contraction.h"
#include "loopnest/triangle_nets.h"
#include "pieces.h"
#include "support/nets.h"
#include "support/problems.h"
#include "target/capabilities.h"
#include "tile/build.h"
#include "tile/index.h"
#include "tile/program.h"

namespace warploom::kernels {
namespace {
using test::found, test::hopper, test::Net;

Contraction matmul(const test::MatmulShape& shape, Dtype dtype = Dtype::bf16) {
  return found(test::matmul_graph(shape, dtype));
}

// Where the CTAs that take a number go, by batch, row and column of tiles.
using Place = std::tuple<int64_t, int64_t, int64_t>;

std::vector<Place> places_of(const TileScheduler& order, int64_t number) {
  const Contraction& c = order.c;
  std::vector<Place> places;
  const TileCoord tile = order.at(number);
  for (int64_t rank = 0; rank < order.cluster * order.beside; ++rank) {
    const auto tile_along = [&](size_t axis) {
      return tile.origin[axis].evaluate({{"cluster_rank", rank}}) / tile.extent[axis];
    };
    const int64_t batch = c.batch.empty() ? 0 : tile_along(c.batch[0]);
    places.emplace_back(batch, tile_along(c.row), tile_along(c.column));
  }
  return places;
}

TEST(PieceTileScheduler, TakesEveryTileOnceWhateverTheGroupAndTheCluster) {
  const Contraction c = matmul({6 * 128, 4 * 64, 64, {3}});
  const TileCoord tile(c.nest, {{c.row, 128}, {c.column, 64}});
  for (const int64_t group : {1, 2, 4, 8})
    for (const auto& [cluster, beside] : {std::pair{1, 1}, {2, 1}, {3, 1}, {1, 2}, {1, 4}}) {
      const TileScheduler order(c, tile, group, cluster, beside);
      EXPECT_EQ(order.count() * cluster * beside, 6 * 4 * 3);
      std::set<Place> taken;
      for (int64_t number = 0; number < order.count(); ++number)
        for (const Place& place : places_of(order, number))
          EXPECT_TRUE(taken.insert(place).second) << group << " " << cluster << " " << beside;
      EXPECT_EQ(taken.size(), 6u * 4 * 3);
    }
}

TEST(PieceTileScheduler, TakesRowsOfAGroupTogetherColumnByColumn) {
  const Contraction c = matmul({6 * 128, 4 * 64, 64});
  const TileScheduler order(c, TileCoord(c.nest, {{c.row, 128}, {c.column, 64}}), 3);
  for (int64_t number = 0; number < order.count(); ++number) {
    const int64_t row = number / 12 * 3 + number % 3;
    const int64_t column = number % 12 / 3;
    EXPECT_EQ(places_of(order, number)[0], Place(0, row, column)) << number;
  }
}

TEST(PieceTileScheduler, TakesWholeGroupsWhereTheirHeightDoesNotDivideTheRows) {
  const Contraction c = matmul({6 * 128, 4 * 64, 64});
  const TileScheduler order(c, TileCoord(c.nest, {{c.row, 128}, {c.column, 64}}), 4);
  for (int64_t number = 0; number < order.count(); ++number)
    EXPECT_EQ(std::get<1>(places_of(order, number)[0]) / 3, number / 12) << "groups of 3 rows";
}

TEST(PieceTileScheduler, TakesTheTermsOfAWindowAtOneSetOfChannelsAfterAnother) {
  Net net;
  const auto y = net.add(graph::OpKind::Conv, {net.x({2, 32, 12, 12}), net.x({16, 32, 3, 3})});
  const Contraction c = found(net.with({y}));
  const std::vector<size_t> axes = stage_axes(c);
  ASSERT_EQ(axes.size(), 3u);
  EXPECT_EQ(axes[0], *c.channel);
  EXPECT_EQ(std::set(axes.begin(), axes.end()), std::set(c.k.begin(), c.k.end()));
}

// A tile's stages by the CTA that sums them, and when it does among those that it takes.
struct Share {
  int64_t cta = -1;
  int64_t turn = -1;
};

// By row and column of tiles, and stage.
using Shares = std::map<std::tuple<int64_t, int64_t, int64_t>, Share>;

// Programs that write which CTA took a stage, and count how often one was taken.
struct Schedule {
  Schedule(const graph::Graph& graph, const WgmmaChoices& s, int num_sms)
      : capabilities(hopper()), contraction(found(graph)) {
    capabilities.num_sms = num_sms;
    const WgmmaProduct product(contraction, false, {Dtype::bf16, 1}, capabilities);
    WgmmaTiles tiles(product, product.sides(s), s);
    stages = tiles.stages();
    rows = contraction.nest.axes[contraction.row] / s.block_m;
    columns = contraction.nest.axes[contraction.column] / s.block_n;
    KernelBuilder draft("schedule");
    tiles.set_grid(draft, 4);
    write_shares(draft, tiles, s);
    draft.finish(made);
  }

  void write_shares(KernelBuilder& draft, const WgmmaTiles& tiles, const WgmmaChoices& s) {
    tile::Builder& t = draft.b;
    const std::vector<int64_t> shape = {rows, columns, stages};
    const TensorId count = t.zeroed(draft.workspace("Count", "count", Dtype::i32, shape));
    const TensorId cta = draft.workspace("Cta", "cta", Dtype::i32, shape);
    const TensorId turn = draft.workspace("Turn", "turn", Dtype::i32, shape);
    const TensorId one = draft.reg("one", Dtype::i32, {1, 1, 1});
    const TensorId own = draft.reg("own", Dtype::i32, {1, 1, 1});
    const TensorId taken = draft.reg("taken", Dtype::f32, {1, 1, 1});
    const TensorId now = draft.reg("now", Dtype::i32, {1, 1, 1});
    t.fill(one, 1);
    t.fill(taken, 0);
    t.map(own, tile::coordinate(0, tile::block(0)));
    tiles.for_each(draft, [&](const TileCoord& tile, const Index& begin, const Index& end, bool) {
      t.for_("s", begin, end, 1, [&](const Index& stage) {
        const Index row = tile.origin[contraction.row] / s.block_m;
        const Index column = tile.origin[contraction.column] / s.block_n;
        const auto place = [&](TensorId to) { return t.tile(to, {row, column, stage}, {1, 1, 1}); };
        t.map(now, t.value(taken));
        t.add(tile::Copy{.src = t.all(one), .dst = place(count), .combine = tile::ReduceOp::sum});
        t.copy(t.all(own), place(cta));
        t.copy(t.all(now), place(turn));
      });
      t.map(taken, t.value(taken) + tile::constant(1));
    });
  }

  // Each stage must be taken once.
  Shares shares() const {
    test::Storage storage;
    test::interpret_all(made, storage);
    Shares found;
    const auto number = [&](const char* name, size_t i) {
      return static_cast<int64_t>(load_as_double(Dtype::i32, storage.at(name).data(), i));
    };
    size_t i = 0;
    test::for_each_index({rows, columns, stages}, [&](const std::vector<int64_t>& at) {
      EXPECT_EQ(number("count", i), 1) << at[0] << " " << at[1] << " " << at[2];
      found[{at[0], at[1], at[2]}] = {number("cta", i), number("turn", i)};
      ++i;
    });
    return found;
  }

  target::Capabilities capabilities;
  Contraction contraction;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t stages = 0;
  Family::Programs made;
};

TEST(PieceWgmmaTiles, DataParallelCtasTakeTileAfterTile) {
  const Schedule schedule(test::matmul_graph({6 * 128, 128, 640}, Dtype::bf16), {}, 4);
  for (const auto& [place, share] : schedule.shares()) {
    EXPECT_EQ(share.cta, std::get<0>(place) % 4);
    EXPECT_EQ(share.turn, std::get<0>(place) / 4);
  }
}

TEST(PieceWgmmaTiles, PartsOfKAreTakenOverAllTilesOneAfterAnother) {
  WgmmaChoices s;
  s.split_k = 3;
  s.scheduler = Scheduler::split_k;
  const Schedule schedule(test::matmul_graph({3 * 128, 2 * 128, 640}, Dtype::bf16), s, 4);
  const std::map<std::tuple<int64_t, int64_t, int64_t>, Share> shares = schedule.shares();
  for (const auto& [place, share] : shares) {
    const auto& [row, column, stage] = place;
    const int64_t part = stage / 4;  // of 10 stages parts have 4, 4 and 2
    const Share& first = shares.at({row, column, part * 4});
    EXPECT_EQ(share.cta, first.cta);
    EXPECT_EQ(share.turn, first.turn);
    EXPECT_EQ((share.cta + 4 * share.turn) / 6, part) << "one part of all 6 tiles, then the next";
  }
}

// The worked example of wgmma_tiles.h: 6 tiles of 10 stages on 4 CTAs, 15 stages each.
TEST(PieceWgmmaTiles, StreamKCtasBeginWithTheTileThatTheNextOneGoesOnWith) {
  WgmmaChoices s;
  s.scheduler = Scheduler::stream_k;
  const Schedule schedule(test::matmul_graph({6 * 128, 128, 640}, Dtype::bf16), s, 4);
  std::vector<int64_t> stages(4);
  for (const auto& [place, share] : schedule.shares()) {
    const int64_t tile = std::get<0>(place);
    const int64_t linear = tile * 10 + std::get<2>(place);
    EXPECT_EQ(share.cta, linear / 15) << linear;
    const bool is_begun_first = tile == (15 * share.cta + 14) / 10;  // the last of its tiles
    EXPECT_EQ(share.turn == 0, is_begun_first) << linear;
    ++stages.at(static_cast<size_t>(share.cta));
  }
  EXPECT_EQ(stages, std::vector<int64_t>(4, 15));
}

TEST(PieceWgmmaTiles, StreamKSharesTheLastTwoWavesEvenlyAndNoOthers) {
  WgmmaChoices s;
  s.scheduler = Scheduler::stream_k;
  const Schedule schedule(test::matmul_graph({11 * 128, 128, 7 * 64}, Dtype::bf16), s, 4);
  std::vector<int64_t> stages(4);
  for (const auto& [place, share] : schedule.shares()) {
    const int64_t tile = std::get<0>(place);
    if (tile < 4) {
      EXPECT_EQ(share.cta, tile) << "the first wave";
    }
    ++stages.at(static_cast<size_t>(share.cta));
  }
  // 7 tiles of 7 stages are left: 49 stages, the first CTA has the one that is over.
  EXPECT_EQ(stages, (std::vector<int64_t>{7 + 13, 7 + 12, 7 + 12, 7 + 12}));
}
}  // namespace
}  // namespace warploom::kernels
