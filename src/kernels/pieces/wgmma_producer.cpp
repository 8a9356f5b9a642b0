// The producer role of a wgmma kernel: tiles of the operands through TMA into the pipeline's
// stages.
#include <cstddef>
#include <cstdint>
#include "base/casts.h"
#include "base/dtype.h"
#include "kernels/kernel_builder.h"
#include "kernels/pieces/operand_packing.h"
#include "kernels/pieces/wgmma_kernel.h"
#include "kernels/pieces/wgmma_product.h"
#include "loopnest/contraction.h"
#include "loopnest/loop_nest.h"
#include "tile/index.h"
#include "tile/program.h"

namespace warploom::kernels {
using tile::Tile;

void WgmmaKernel::add_operand(const char* name, const char* stage, const Access& access,
                              const Axes& axes, int64_t rows) {
  from_.emplace_back(draft_, name, c_.nest, access, axes);
  stages_.push_back(t_.shared(stage, precision_.operand, {rows, s_.block_k}));
}

void WgmmaKernel::add_operands() {
  const Axes a_axes = axes_of({rows_above_, c_.row, c_.channel});
  const Axes b_axes = axes_of({columns_above_, c_.column, c_.channel});
  const int64_t padded = s_.block_m + kTransposePadding;
  if (s_.transposes_a()) {
    const Axes transposed = axes_of({c_.channel, c_.row});
    from_.emplace_back(draft_, "A", c_.nest, a_.high, transposed);
    stages_.push_back(t_.shared("a", Dtype::f32, {s_.block_k, padded}));
  } else {
    add_operand("A", "a", a_.high, a_axes, s_.block_m);
  }
  add_operand("B", "b", b_.high, b_axes, s_.block_n);
  if (precision_.terms > 1) {
    add_operand("A_rest", "a_rest", a_.low, a_axes, s_.block_m);
    add_operand("B_rest", "b_rest", b_.low, b_axes, s_.block_n);
  }
  pipeline_ = t_.pipeline("pipe", as_int(s_.stages), stages_);
  if (s_.transposes_a())
    lines_ = t_.as_strided("lines", stages_[0], 0, {s_.block_m, s_.block_k}, {1, padded});
}

Tile WgmmaKernel::box_of(size_t i, const TileCoord& tile) const {
  Tile box = from_[i].at(tile);
  if (s_.transposes_a() && i == 0) {
    box.extent.back() += kTransposePadding;
    box.step.clear();
  }
  return box;
}

void WgmmaKernel::produce() {
  tiles_.for_each(draft_, [&](TileCoord tile, const Index& begin, const Index& end, bool) {
    t_.for_("k", begin, end, 1, [&](const Index& k) {
      tile.place(c_.nest, summed_, k);
      t_.produce(pipeline_, [&] { produce_stage(tile); });
    });
  });
}

// The tiles of b serve all CTAs of a cluster.
void WgmmaKernel::produce_stage(const TileCoord& tile) {
  for (size_t i = 0; i < stages_.size(); ++i)
    if (s_.cluster_m > 1 && i % 2 == 1)
      t_.multicast(box_of(i, tile), t_.all(stages_[i]), "x");
    else
      t_.copy(box_of(i, tile), t_.all(stages_[i]));
}
}  // namespace warploom::kernels
