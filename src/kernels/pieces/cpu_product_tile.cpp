// One register tile of a product on a CPU: its operands, what blocks before summed, what follows.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>
#include "base/dtype.h"
#include "kernels/config/configs.h"
#include "kernels/kernel_builder.h"
#include "kernels/pieces/cpu_product.h"
#include "kernels/pieces/epilogue.h"
#include "loopnest/contraction.h"
#include "tile/index.h"
#include "tile/program.h"

namespace warploom::kernels {
using tile::Tile;

Tile CpuProduct::kept(const Index& row) const {
  const Index column = holds_rows() ? here_.origin[c_.column] : Index(0);
  return t_.tile(sums_, {row, 0, column}, {1, rows_.tile, width_});
}

// What follows sums that are whole rows, one row after another.
void CpuProduct::finish_rows() {
  const TensorId row = t_.reg("row", Dtype::f32, {1, columns_.size});
  t_.for_("i", 0, rows_.per_task, 1, [&](const Index& i) {
    t_.for_("r", 0, rows_.tile, 1, [&](const Index& r) {
      TileCoord whole = here_;
      whole.origin[c_.row] = rows_.origin(first_row_ + i) + r;
      whole.origin[c_.column] = 0;
      whole.extent[c_.row] = 1;
      whole.extent[c_.column] = columns_.size;
      t_.copy(t_.tile(sums_, {i, r, 0}, {1, 1, columns_.size}), t_.all(row));
      store(draft_, c_, row, whole, result_);
    });
  });
}

// What a product adds its own sum to: 0, or what the blocks before have summed.
void CpuProduct::take_over(const Index& row, const Index& number) {
  const auto copy = [&] { t_.copy(kept(row), t_.all(part_)); };
  const bool adds = blocks() > 1 && s_.step_k <= 0;
  const auto known = number.constant();
  if (adds && known.value_or(0) > 0) return copy();
  t_.fill(part_, 0);
  if (adds && !known) t_.if_less(0, number, copy);
}

// Where a block is several products, each would add to all that was before: it is added behind
// them.
void CpuProduct::add_before(const Index& row, const Index& number) {
  if (blocks() == 1) return;
  const TensorId before = draft_.reg("before", Dtype::f32, {rows_.tile, width_});
  const auto add = [&] {
    t_.copy(kept(row), t_.all(before));
    t_.map(part_, t_.value(before) + t_.value(part_));
  };
  const auto known = number.constant();
  if (known.value_or(0) > 0) return add();
  if (!known) t_.if_less(0, number, add);
}

Tile CpuProduct::rows_of_a(const Index& k, int64_t depth) const {
  if (a_.tensor >= 0)
    return t_.tile(a_.tensor, {place_along(a_.outer, here_), here_.origin[c_.row], k},
                   {1, rows_.tile, depth});
  TileCoord from = here_;
  from.origin[k_] = k;
  from.extent[k_] = depth;
  return global_a_->at(from);
}

// In the tensor, or packed by a program.
Tile CpuProduct::panel_of_b(const Index& k, int64_t depth) const {
  if (takes_pairs())
    return t_.tile(b_.tensor, {place_along(b_.outer, here_), panel_, k / 2, 0, 0},
                   {1, 1, depth / 2, 2, width_});
  if (b_.tensor >= 0)
    return t_.tile(b_.tensor, {place_along(b_.outer, here_), panel_, k, 0}, {1, 1, depth, width_});
  TileCoord from = here_;
  from.origin[k_] = k;
  from.extent[k_] = depth;
  return global_b_->at(from);
}

// part = A · b. Where the tile is wider than registers hold, some terms at a time.
void CpuProduct::multiply(const Index& k, int64_t depth) {
  const int64_t step = s_.step_k <= 0 ? depth : std::min(s_.step_k, depth);
  const auto take = [&](const Index& at, int64_t deep) {
    const Tile b =
        scratch_b_ >= 0 ? t_.tile(scratch_b_, {at, 0}, {deep, width_}) : panel_of_b(k + at, deep);
    t_.mma(part_, rows_of_a(k + at, deep), b);
  };
  if (step == depth) return take(0, depth);
  t_.for_("p", 0, depth / step, 1, [&](const Index& p) { take(p * step, step); });
  if (const int64_t rest = depth % step; rest > 0) take(depth - rest, rest);
}
}  // namespace warploom::kernels
