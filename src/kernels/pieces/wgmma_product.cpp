#include "kernels/pieces/wgmma_product.h"
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>
#include "base/dtype.h"
#include "kernels/config/configs.h"
#include "kernels/family.h"
#include "kernels/kernel_builder.h"
#include "kernels/pieces/precision.h"
#include "kernels/pieces/promotion.h"
#include "loopnest/contraction.h"
#include "loopnest/loop_nest.h"

namespace warploom::kernels {
namespace {
size_t sets_of(const Contraction& c) {
  if (c.reductions.empty()) return 1;
  const RowStep last = std::ranges::max(row_steps(c), {}, &RowStep::set);
  return last.set + 1;
}
}  // namespace

WgmmaProduct::WgmmaProduct(Contraction contraction, bool in_windows, const Precision& used,
                           const Capabilities& target)
    : c(std::move(contraction)),
      swapped(with_swapped_ab(c)),
      windows(in_windows),
      precision(used),
      capabilities(target),
      second_pixels(windows ? second_column(c) : std::nullopt),
      accumulator_sets_(sets_of(c)) {}

Precision WgmmaProduct::precision_of(const WgmmaChoices& s) const {
  const bool by_tf32 = precision.is_fp16_split() && s.fp32_emulation != Emulation::fp16x3;
  return by_tf32 ? Precision{Dtype::tf32, 3} : precision;
}

TileCoord WgmmaProduct::tile_of(const Contraction& sides, const WgmmaChoices& s) const {
  const int64_t rows = std::max<int64_t>(s.tile_p, 1);
  TileCoord tile(sides.nest, {{sides.row, s.block_m},
                              {sides.column, s.block_n},
                              {sides.channel, s.block_k},
                              {second_pixels, rows}});
  int64_t& pixels = tile.extent[c.column];
  if (second_pixels) pixels = std::max<int64_t>(pixels / rows, 1);
  return tile;
}

int64_t WgmmaProduct::stages_of(int64_t block_k) const {
  return TileCoord(c.nest, {{c.channel, block_k}}).count(c.nest, c.k);
}

int64_t WgmmaProduct::row_ctas(const WgmmaChoices& s) const {
  return c.reductions.empty() ? 1 : ceil_div(c.nest.axes[c.column], s.block_n);
}

bool WgmmaProduct::compensates(const WgmmaChoices& s) const {
  const int64_t parts = ceil_div(stages_of(s.block_k), s.split_k);
  return precision.terms > 1 && promotion::compensates(parts, s.block_k);
}

int64_t WgmmaProduct::most_accumulators(const WgmmaChoices& s) const {
  const bool next = promotes() && s.stages_per_round() > 1;
  if (compensates(s)) return next ? 48 : 64;
  if (next || accumulator_sets_ > 1) return 64;
  return promotes() ? 96 : 128;
}

std::pair<std::vector<size_t>, int64_t> WgmmaProduct::outer_axes() const {
  std::pair<std::vector<size_t>, int64_t> out{{}, 1};
  for (size_t a = 0; a < c.nest.axes.size(); ++a) {
    const bool tiled = a == c.row || a == c.column || a == second_pixels;
    if (tiled || std::ranges::count(c.k, a) > 0) continue;
    out.first.push_back(a);
    out.second *= c.nest.axes[a];
  }
  return out;
}

bool WgmmaProduct::can_transpose(const Contraction& sides) const {
  const Access& a = sides.nest.loads[sides.a];
  const bool is_tf32 = precision.operand == Dtype::tf32 && precision.terms == 1;
  if (windows || !is_tf32) return false;
  if (a.stride(sides.row) != 1 || a.stride(*sides.channel) == 1) return false;
  for (size_t d = 0; d < a.at.size(); ++d)
    if (a.at[d].steps[sides.row] == 0 && a.strides[d] % 4 != 0) return false;
  return true;
}
}  // namespace warploom::kernels
