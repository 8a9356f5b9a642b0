// The order in which CTAs compute the tiles of a contraction's result, and in which stages take the
// terms of its sum.
#pragma once
#include "kernels/kernel_builder.h"
#include "loopnest/contraction.h"

namespace warploom::kernels {
// The order in which the tiles of a contraction's result are computed. Tiles of `group`
// neighbouring rows of tiles are taken together, column by column, so that blocks which run at the
// same time share operands in the L2 cache. The blocks of a cluster take tiles below each other, or
// all those of a row `beside` each other, and count as one.
struct TileScheduler {
  const Contraction& c;
  TileCoord tile;
  int64_t group;
  int64_t cluster = 1;
  int64_t beside = 1;
  const int64_t tiles_m = ceil_div(tile.count(c.nest, c.m), cluster);
  const int64_t tiles_n = tile.count(c.nest, c.n) / beside;
  const int64_t batch = tile.count(c.nest, c.batch);

  int64_t count() const { return tiles_m * tiles_n * batch; }

  TileCoord at(const Index& number) const;  // the tile where it lies
};

// Of `count` tiles the one that a persistent block takes in a turn, blocks taking every
// `workers`-th turn: in one turn from the front of the order, in its next as far from the back, the
// same tile mirrored at the middle of the result. Of a triangle both have as much to sum as any
// other two.
Index paired_order(const Index& turn, int64_t count, int64_t workers);

// The axes of the sum in the order in which stages take its terms, slowest first: through the
// window at one set of channels after another.
std::vector<size_t> stage_axes(const Contraction& contraction);
}  // namespace warploom::kernels
