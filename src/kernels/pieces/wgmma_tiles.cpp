#include "kernels/pieces/wgmma_tiles.h"
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include "base/dtype.h"
#include "kernels/config/configs.h"
#include "kernels/family.h"
#include "kernels/kernel_builder.h"
#include "kernels/pieces/tile_scheduler.h"
#include "kernels/pieces/wgmma_product.h"
#include "loopnest/contraction.h"
#include "tile/index.h"
#include "tile/program.h"

namespace warploom::kernels {
namespace {
using tile::Tile;

TileCoord of_cluster(TileCoord tile, size_t row, int64_t ctas) {
  tile.extent[row] *= ctas;
  return tile;
}

int64_t workers_of(const Capabilities& capabilities, int64_t ctas, int64_t ctas_per_sm,
                   int64_t count) {
  return std::clamp<int64_t>(capabilities.clusters_at_once(ctas, ctas_per_sm), 1, count);
}
}  // namespace

// The CTAs of a cluster take tiles below each other, so that one tile of b serves them all.
WgmmaTiles::WgmmaTiles(const WgmmaProduct& product, const Contraction& sides, const WgmmaChoices& s)
    : c_(sides),
      tile_(product.tile_of(sides, s)),
      row_ctas_(product.row_ctas(s)),
      ctas_(s.cluster_m * row_ctas_),
      order_{sides, tile_, s.raster_group_m, s.cluster_m, row_ctas_},
      clusters_{sides, of_cluster(tile_, sides.row, s.cluster_m), s.raster_group_m, 1, row_ctas_},
      per_round_(s.stages_per_round()),
      stages_(round_up(tile_.count(sides.nest, stage_axes(sides)), per_round_)),
      parts_(s.split_k),
      part_stages_(round_up(ceil_div(stages_, parts_), per_round_)),
      count_(order_.count() * parts_),
      workers_(workers_of(product.capabilities, ctas_, s.ctas_per_sm, count_)),
      block_m_(s.block_m),
      block_n_(s.block_n),
      stream_(s.scheduler == Scheduler::stream_k) {}

void WgmmaTiles::set_grid(KernelBuilder& draft, int warps) const {
  draft.b.grid(workers_ * ctas_).cluster(ctas_).warps(warps);
}

void WgmmaTiles::declare(KernelBuilder& draft, Dtype sums) {
  if (!stream_) return;
  left_ = draft.workspace("Left", "left_sums", sums, {workers_, block_m_, block_n_});
  flags_ = draft.b.zeroed(draft.workspace("flags", "left_flags", Dtype::i32, {workers_}));
  draft.b.cooperative();
}

void WgmmaTiles::compute(const Body& body, const Index& linear) const {
  const Index number = parts_ == 1 ? linear : linear % order_.count();
  const Index part = parts_ == 1 ? Index(0) : linear / order_.count();
  const Index begin = part * part_stages_;
  const Index end = tile::min(begin + part_stages_, Index(stages_));
  const TileCoord of_all = clusters_.at(number);
  const auto [first, last] =
      of_all.stages_within(c_.domain_constraints, *c_.channel, begin, end, per_round_);
  TileCoord tile = order_.at(number);
  if (parts_ > 1) tile.origin.back() = part;
  body(tile, first, last, false);
}

void WgmmaTiles::for_each(KernelBuilder& draft, const Body& body) const {
  auto& t = draft.b;
  const int64_t alone = stream_ ? (count_ / workers_ - 1) * workers_ : count_;
  t.for_("tile", tile::block(0) / ctas_, alone, workers_, [&](const Index& turn) {
    if (c_.domain_constraints.empty()) return compute(body, turn);
    const Index number = paired_order(turn, count_, workers_);
    t.for_("number", number, number + 1, 1, [&](const Index& one) { compute(body, one); });
  });
  if (stream_) share_rest(draft, body);
}

// As much each, the first few one round more: products of both counts would be too large for long
// sums.
void WgmmaTiles::share_rest(KernelBuilder& draft, const Body& body) const {
  auto& t = draft.b;
  const int64_t alone = (count_ / workers_ - 1) * workers_;
  const int64_t rounds = stages_ / per_round_;  // of a tile
  const int64_t rest = (count_ - alone) * rounds;
  const auto start = [&](const Index& cta) {
    return cta * (rest / workers_) + tile::min(cta, Index(rest % workers_));
  };
  const Index worker = tile::block(0);
  const Index low = start(worker);
  const Index high = start(worker + 1);
  t.for_("back", 0, 3, 1, [&](const Index& back) {
    const Index number = (high - 1) / rounds - back;
    const Index first = number * rounds;
    const Index begin = tile::max(low - first, Index(0)) * per_round_;
    const Index end = tile::min(high - first, Index(rounds)) * per_round_;
    t.if_less(begin, end, [&] { body(order_.at(number + alone), begin, end, true); });
  });
}

Tile WgmmaTiles::left_by(KernelBuilder& draft, const Index& cta) const {
  return draft.b.tile(left_, {cta, 0, 0}, {1, block_m_, block_n_});
}

void WgmmaTiles::take_over(KernelBuilder& draft, TensorId acc, const Index& begin) const {
  auto& t = draft.b;
  const Index before = tile::block(0) - 1;
  t.if_less(0, begin, [&] {
    const Tile flag = t.tile(flags_, {before}, {1});
    t.add(tile::Wait{flag, 1});
    t.copy(left_by(draft, before), t.all(acc));
  });
}

void WgmmaTiles::hand_over(KernelBuilder& draft, TensorId acc, const Index& end) const {
  auto& t = draft.b;
  const Index worker = tile::block(0);
  t.if_less(end, stages_, [&] {
    t.copy(t.all(acc), left_by(draft, worker));
    const Tile flag = t.tile(flags_, {worker}, {1});
    t.add(tile::Signal{flag, 1});
  });
}
}  // namespace warploom::kernels
