// RowSplitSquares: Σ (x - M)² over a row that CTAs share, M being a number that follows from Σ x
// (RowReduction::centered_squares).
//
// A CTA takes differences to the mean of its own part; how far that lies from M is added when the
// CTAs exchange, once for both sums:
//
//   Σ over the row (x - M)² = Σ over CTAs (own squares + elements of a part · (own mean - M)²)
//
// Every CTA must have a part of the same size, and keep the row.
#pragma once
#include "kernels/pieces/row_kernel.h"

namespace warploom::kernels {
class RowSplitSquares {
 public:
  RowSplitSquares(RowKernel& kernel, bool keeps);

  // Whether the kernel computes such squares: then its reductions are over the CTA's own part.
  explicit operator bool() const { return serves_; }

  void after_sum();      // the mean of the CTA's own part
  Value off_own_mean();  // (x - own mean)², for the tile that the kernel is at
  void join();           // both sums over all CTAs

 private:
  // A sum over the CTA's part as a mean.
  Value mean_of(TensorId sum) const;
  // M, after its scalars have been computed.
  Value center();

  int sum() const { return rows_.passes[0].reduces[0]; }

  int squares() const { return rows_.passes[1].reduces[0]; }

  RowKernel& kernel_;
  const RowReduction& rows_;
  tile::Builder& b_;
  int64_t part_;  // elements of a CTA's part
  bool serves_;
};
}  // namespace warploom::kernels
