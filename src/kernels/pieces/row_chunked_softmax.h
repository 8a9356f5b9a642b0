// RowChunkedSoftmax: rows of many chunks on a CPU whose maximum and sum of exponentials are found
// in one walk. The running maximum is one number for all lanes and changes between chunks only, so
// that the walk costs one exponential an element. Where the result is made of the exponentials,
// those are kept, relative to the maximum that their chunk knew.
#pragma once
#include "kernels/pieces/row_kernel.h"

namespace warploom::kernels {
class RowChunkedSoftmax {
 public:
  // keeps: rows stay in scratch memory between the two walks
  RowChunkedSoftmax(RowKernel& kernel, bool keeps);

  static bool serves(const RowReduction& rows) {
    return rows.online_softmax && rows.passes.size() == 3;
  }

  void compute_row();

 private:
  void read_chunk(const Index& chunk);
  void write_chunk(const Index& chunk);
  void add_compensated(const Value& part, TensorId scale);
  tile::Tile maximum_of_chunk(const Index& chunk);

  RowKernel& kernel_;
  RowTiles& tiles_ = kernel_.tiles;
  RowTerms& terms_ = kernel_.terms;
  const RowReduction& rows_ = kernel_.rows();
  tile::Builder& b_ = kernel_.tiles.b;
  bool keeps_;
  // Terms.
  int maximum_ = rows_.passes[0].reduces[0];
  int sum_ = rows_.passes[1].reduces[0];
  int x_ = rows_.term(maximum_).operands[0];
  int exponential_ = rows_.term(sum_).operands[0];
  // Numbers of a row: the maximum so far, the sum so far, and what rounding lost of it.
  TensorId high_ = tiles_.scalar("high");
  TensorId all_ = tiles_.scalar("all");
  TensorId lost_ = tiles_.scalar("lost");
  bool keeps_exponentials_ = false;
  TensorId highs_ = -1;  // the maximum that each chunk knew
};
}  // namespace warploom::kernels
