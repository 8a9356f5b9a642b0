#include "kernels/pieces/row_split_squares.h"
#include "base/casts.h"
#include "kernels/kernel_builder.h"
#include "kernels/pieces/row_kernel.h"
#include "tile/build.h"
#include "tile/program.h"

namespace warploom::kernels {
using tile::ReduceOp;

RowSplitSquares::RowSplitSquares(RowKernel& kernel, bool keeps)
    : kernel_(kernel),
      rows_(kernel.rows()),
      b_(kernel.tiles.b),
      part_(kernel.tiles.elements_of_part()) {
  const bool even = kernel.tiles.options.ctas_per_row * part_ == rows_.row_size();
  serves_ = rows_.centered_squares && keeps && kernel.tiles.shares_rows() && even;
}

Value RowSplitSquares::mean_of(TensorId sum) const {
  return b_.value(sum) * tile::constant(1.0 / as_double(part_));
}

void RowSplitSquares::after_sum() {
  RowTiles& tiles = kernel_.tiles;
  const TensorId total = kernel_.terms.bound(sum()).tensor;
  b_.map(tiles.scalar("middle"), mean_of(total));
  if (!tiles.options.exchange_in_memory) b_.cluster_reduce(total, ReduceOp::sum);
}

Value RowSplitSquares::off_own_mean() {
  const Value middle = b_.value(kernel_.tiles.scalar("middle"));
  const Value off = kernel_.terms.compute(rows_.term(sum()).operands[0]) - middle;
  return off * off;
}

Value RowSplitSquares::center() {
  kernel_.terms.compute_scalars(1);
  const RowTerm& square = rows_.term(rows_.term(squares()).operands[0]);
  const RowTerm& difference = rows_.term(square.operands[0]);
  return kernel_.terms.compute(difference.operands[1]);
}

void RowSplitSquares::join() {
  RowTiles& tiles = kernel_.tiles;
  const bool in_memory = tiles.options.exchange_in_memory;
  const TensorId total = kernel_.terms.bound(sum()).tensor;
  const TensorId own_squares = kernel_.terms.bound(squares()).tensor;
  TensorId means = tiles.scalar("middle");
  TensorId parts = own_squares;
  if (in_memory) {
    const auto gathered = kernel_.all_reduce.gather({total, own_squares});
    means = gathered[0];
    parts = gathered[1];
    b_.reduce(total, means, tiles.row_dim(), ReduceOp::sum);
    b_.map(means, mean_of(means));
  }
  b_.map(means, b_.value(means) - center());
  const Value off = b_.value(means);
  const Value elements = tile::constant(as_double(part_));
  b_.map(parts, b_.value(parts) + off * off * elements);
  if (in_memory)
    b_.reduce(own_squares, parts, tiles.row_dim(), ReduceOp::sum);
  else
    b_.cluster_reduce(own_squares, ReduceOp::sum);
}
}  // namespace warploom::kernels
