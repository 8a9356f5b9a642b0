// RowSplitSoftmax: the softmax of a row that the CTAs of a cluster share, with split-phase
// reductions.
//
// A CTA need not wait for the row's maximum to take exponentials. It takes them of differences to
// its own maximum while the maxima of the others are on their way, and rescales its sum and what it
// kept by
//
//   factor = exp(own maximum - row's maximum)
//
// Of a row of -infinity the own maximum counts as the lowest finite number, since the difference of
// infinities is no number; where both are the same infinity the factor is 1.
#pragma once
#include <optional>
#include "kernels/pieces/row_terms.h"

namespace warploom::kernels {
class RowSplitSoftmax {
 public:
  RowSplitSoftmax(RowTiles& tiles, RowTerms& terms)
      : t_(tiles), terms_(terms), rows_(tiles.rows), b_(tiles.b), serves_(serves()) {}

  // Whether the kernel is such a softmax: then its reductions are over the CTA's own part.
  explicit operator bool() const { return serves_; }

  // After the reductions of pass 0 (the maximum) and pass 1 (the sum), before pass 2.
  void after_maximum();
  void after_sum();
  void before_last_pass();
  // Rescales exponentials that were kept, for the tile that the last pass is at.
  void rescale_kept();

 private:
  bool serves() const;

  int maximum() const { return rows_.passes[0].reduces[0]; }

  int sum() const { return rows_.passes[1].reduces[0]; }

  int exponential() const { return rows_.term(sum()).operands[0]; }

  // A term that is the exponential times one number a row, and that number.
  struct Share {
    int product;
    int scale;
  };

  std::optional<Share> share() const;

  RowTiles& t_;
  RowTerms& terms_;
  const RowReduction& rows_;
  tile::Builder& b_;
  bool serves_;
  TensorId own_maximum_ = -1;
};
}  // namespace warploom::kernels
