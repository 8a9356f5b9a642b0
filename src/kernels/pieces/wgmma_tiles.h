// Which CTA of the wgmma kernel computes what: the tile scheduler of a persistent kernel.
//
// data_parallel: each CTA takes tile after tile. split_k: the same over all tiles of one part of k,
// then of the next. stream_k: where tiles do not fill the last wave, those of the last two are
// shared between all CTAs. Each takes as much of k, from within one tile to within another. It
// begins with the tile that the next CTA goes on with, and leaves that CTA its sums, which are long
// there when they are waited for: sums are always of the same terms in the same order.
//
//   6 tiles of 10 stages on 4 CTAs: the first two waves are shared, 15 stages a CTA
//      CTA 0   tile 1, stages 0 … 4, left to CTA 1; then tile 0, stages 0 … 9
//      CTA 1   tile 2, stages 0 … 9; then tile 1, stages 5 … 9, from the sums of CTA 0
#pragma once
#include <functional>
#include "kernels/pieces/wgmma_product.h"

namespace warploom::kernels {
class WgmmaTiles {
 public:
  // What a CTA does for stages begin … end of a tile's sum; `shared`: the tile is of two CTAs.
  using Body =
      std::function<void(TileCoord tile, const Index& begin, const Index& end, bool shared)>;

  // `sides` outlives it.
  WgmmaTiles(const WgmmaProduct& product, const Contraction& sides, const WgmmaChoices& s);

  void set_grid(KernelBuilder& draft, int warps) const;
  // Workspaces in which CTAs leave sums of that type for others.
  void declare(KernelBuilder& draft, Dtype sums);
  void for_each(KernelBuilder& draft, const Body& body) const;

  // The sums that the CTA before left are loaded; those of this one are left to the next.
  void take_over(KernelBuilder& draft, TensorId acc, const Index& begin) const;
  void hand_over(KernelBuilder& draft, TensorId acc, const Index& end) const;

  int64_t stages() const { return stages_; }  // of a tile's sum, whole rounds

  int64_t stages_per_round() const { return per_round_; }

  int64_t row_ctas() const { return row_ctas_; }

 private:
  void compute(const Body& body, const Index& linear) const;
  void share_rest(KernelBuilder& draft, const Body& body) const;
  tile::Tile left_by(KernelBuilder& draft, const Index& cta) const;

  const Contraction& c_;
  TileCoord tile_;
  int64_t row_ctas_;
  int64_t ctas_;  // of a cluster
  TileScheduler order_;
  TileScheduler clusters_;  // what the CTAs of a cluster compute: they go through the same stages
  int64_t per_round_;
  int64_t stages_;
  int64_t parts_;
  int64_t part_stages_;
  int64_t count_;  // tiles, of all parts
  int64_t workers_;
  int64_t block_m_;
  int64_t block_n_;
  bool stream_;
  TensorId left_ = -1;
  TensorId flags_ = -1;
};
}  // namespace warploom::kernels
