// RowKernel: the pieces of a kernel of rows, and the ways to walk over a row.
//
//   RowKernel kernel(rows, {.extents = …, .ctas_per_row = 2});
//   kernel.tiles.b.grid(…).warps(…);
//   kernel.tiles.go_to_rows(tile::block(0) / 2);
//   compute_in_registers(kernel);
//   kernel.tiles.draft.finish(programs);
#pragma once
#include "kernels/pieces/row_all_reduce.h"
#include "kernels/pieces/row_split_softmax.h"
#include "kernels/pieces/row_terms.h"
#include "kernels/pieces/row_tiles.h"

namespace warploom::kernels {
struct RowKernel {
  RowKernel(const RowReduction& rows, RowKernelOptions options)
      : tiles(rows, std::move(options)),
        terms(tiles),
        all_reduce(tiles, terms),
        split_softmax(tiles, terms) {}

  RowTiles tiles;
  RowTerms terms;
  RowAllReduce all_reduce;
  RowSplitSoftmax split_softmax;

  const RowReduction& rows() const { return tiles.rows; }
};

// Computes the rows that the kernel is at. A tile is a whole row, or a CTA's part of it.
void compute_in_registers(RowKernel& kernel);

// The same tile by tile, once for each pass. Where `keeps`, what passes keep stays in shared memory
// (in registers, where the row is unrolled); else it is computed again, from loads that are made
// again. Every thread has results of its own; they are joined after the pass.
void compute_in_passes(RowKernel& kernel, bool keeps);

// Passes 0 and 1 together, for rows whose passes keep nothing: RowReduction::online_softmax and
// index_of_extreme.
void reduce_online_softmax(RowKernel& kernel);
void reduce_index_of_extreme(RowKernel& kernel);
}  // namespace warploom::kernels
