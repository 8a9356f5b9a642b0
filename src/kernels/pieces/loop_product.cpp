#include "kernels/pieces/loop_product.h"
#include <fmt/format.h>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "kernels/kernel_builder.h"
#include "kernels/pieces/loop_tile.h"
#include "kernels/pieces/promotion.h"
#include "loopnest/loop_nest.h"
#include "tile/program.h"

namespace warploom::kernels::direct {
using promotion::Overflow;
using tile::Tile;

LoopProduct::LoopProduct(LoopTile& tile)
    : t_(tile),
      product_(*tile.tiling.product),
      b_(tile.b),
      block_k_(tile.options.block_k),
      m_(tile.extent(*tile.tiling.roles.y)),
      x_(tile.extent(*tile.tiling.roles.x)),
      n_(x_ * tile.options.rows_per_product) {}

void LoopProduct::add_to(TensorId sum, const std::vector<bool>& varies) {
  const LoopNest& nest = t_.nest;
  const int64_t taps = product_.taps;
  const int64_t blocks = ceil_div(nest.axes[product_.k], block_k_);
  // Dimensions of the sum come behind those of A's tiles, and before those of B's.
  auto a_axes = t_.axes();
  auto b_axes = t_.axes();
  a_axes.push_back(product_.k);
  b_axes.insert(b_axes.begin(), product_.k);
  const TensorTile from_a(t_.draft, "A", nest, product_.a, a_axes);
  const TensorTile from_b(t_.draft, "B", nest, product_.b, b_axes);
  const TensorId a = b_.shared("a", Dtype::f32, {m_, block_k_ * taps});
  const TensorId w = b_.shared("b", Dtype::f32, {block_k_, taps, n_});
  const TileCoord& here = t_.at();
  const auto [first, last] = here.stages_within(product_.domain_constraints, product_.k, 0, blocks);
  const TensorId part = blocks > 1 ? t_.reg("part", Dtype::f32, varies) : sum;
  const bool compensates = promotion::compensates(blocks, block_k_ * taps);
  if (compensates) b_.fill(part, 0);
  b_.for_("k", first, last, 1, [&](const Index& k) {
    t_.move_to(product_.k, k * block_k_);
    Tile rows_of_a = from_a.at(t_.at());
    rows_of_a.extent.back() = block_k_ * taps;
    b_.copy(std::move(rows_of_a), b_.all(a));
    for_each_tap(0, 0, [&](const Index& tap) { copy_windows(w, from_b, tap); });
    if (part != sum && !compensates) b_.fill(part, 0);
    multiply(part, a, w);
    if (compensates)
      promotion::add_compensated(b_, sum, part, t_.reg("grown", Dtype::f32, varies),
                                 Overflow::stays);
    else if (part != sum)
      b_.map(sum, b_.value(sum) + b_.value(part));
  });
}

void LoopProduct::copy_windows(TensorId to, const TensorTile& from, const Index& tap) {
  t_.for_each_row([&](const Index& row) {
    TileCoord block = t_.at();
    block.extent[product_.k] = block_k_;
    const Tile place = b_.tile(to, {0, tap, row * x_}, {block_k_, 1, x_});
    b_.copy(from.at(block), place, product_.b.padding_value);
  });
}

void LoopProduct::multiply(TensorId to, TensorId a, TensorId b) {
  const int64_t taps = product_.taps;
  if (taps == 1) {
    b_.mma(to, b_.all(a), b_.all(b));
    return;
  }
  b_.for_("c", 0, block_k_, 1, [&](const Index& c) {
    const Tile taps_of_a = b_.tile(a, {0, c * taps}, {m_, taps});
    const Tile taps_of_b = b_.tile(b, {c, 0, 0}, {1, taps, n_});
    b_.mma(to, taps_of_a, taps_of_b);
  });
}

void LoopProduct::for_each_tap(size_t axis, const Index& tap,
                               const std::function<void(const Index&)>& body) {
  const LoopNest& nest = t_.nest;
  if (axis == nest.axes.size()) return body(tap);
  if (!t_.tiling.reduced[axis] || axis == product_.k) return for_each_tap(axis + 1, tap, body);
  b_.for_(fmt::format("i{}", axis), 0, nest.axes[axis], 1, [&](const Index& i) {
    t_.move_to(axis, i);
    for_each_tap(axis + 1, tap * nest.axes[axis] + i, body);
  });
}
}  // namespace warploom::kernels::direct
