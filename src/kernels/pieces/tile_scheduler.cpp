#include "kernels/pieces/tile_scheduler.h"
#include <cstddef>
#include <cstdint>
#include <vector>
#include "kernels/kernel_builder.h"
#include "tile/index.h"

namespace warploom::kernels {
TileCoord TileScheduler::at(const Index& number) const {
  // The divisor of tiles_m nearest to `group`, so that every group is whole.
  int64_t width = 1;
  const auto distance = [&](int64_t w) { return w > group ? w * 8 / group : group * 8 / w; };
  for (int64_t w = 1; w <= tiles_m; ++w)
    if (tiles_m % w == 0 && distance(w) < distance(width)) width = w;
  const int64_t tiles = tiles_m * tiles_n;
  const Index in_batch = batch > 1 ? number % tiles : number;
  const Index first = in_batch / (width * tiles_n) * width;
  const Index within = in_batch % (width * tiles_n);
  Index m = first + within % width;
  if (cluster > 1) m = m * cluster + tile::cluster_rank();
  Index n = within / width;
  if (beside > 1) n = n * beside + tile::cluster_rank();
  TileCoord placed = tile;
  placed.place(c.nest, c.m, m);
  placed.place(c.nest, c.n, n);
  placed.place(c.nest, c.batch, batch > 1 ? number / tiles : Index(0));
  return placed;
}

Index paired_order(const Index& turn, int64_t count, int64_t workers) {
  const Index round = turn / workers;
  const Index front = turn - (round + 1) / 2 * workers;
  return front + round % 2 * (Index(count - 1) - front * 2);
}

std::vector<size_t> stage_axes(const Contraction& c) {
  if (!c.scales.empty()) return c.k;
  std::vector<size_t> axes;
  if (c.channel) axes.push_back(*c.channel);
  for (const size_t axis : c.k)
    if (axis != c.channel) axes.push_back(axis);
  return axes;
}
}  // namespace warploom::kernels
