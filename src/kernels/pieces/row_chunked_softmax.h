// RowChunkedSoftmax: rows of many chunks on a CPU whose maximum and sum of exponentials are found
// in one walk. The running maximum is one number for all lanes and changes between chunks only, so
// that the walk costs one exponential an element. Where the result is made of the exponentials,
// those are kept, relative to the maximum that their chunk knew.
//
// Of several rows, each is read while the one before it is written, so that memory is read and
// written at the same time. Chunk after chunk, what the one kept gives its place to what the other
// keeps; and the maximum of the next chunk is found meanwhile:
//
//   row 0     read
//   row 1     for each chunk: y[0] ← kept · factor; kept ← exp(x[1] - high), summed up;
//                             the maximum of x[1]'s next chunk
//   …
//   row n-1   written
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

  // The row that the kernel is at.
  void compute_row();
  // So many rows, from the first on.
  void compute_rows(const Index& first, const Index& count, bool are_several);

 private:
  bool overlaps() const;
  void begin_row();
  void end_row();
  void read_row();
  void write_row();
  void read_and_write_row(const Index& row);
  void read_chunk(const Index& chunk);
  void read_and_write_chunk(const Index& row, const Index& chunk);
  void write_chunk(const Index& chunk);
  void find_maximum();
  TensorId rise_to_maximum(const Index& chunk);
  void exponentials(TensorId x);
  void read_factor(const Index& chunk);
  void write_kept();
  void bind_written();
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
  // Of the row that is written.
  TensorId written_high_ = tiles_.scalar("written_high");
  TensorId written_sum_ = tiles_.scalar("written_sum");
  RowTerms::Bindings written_;  // scalars of its last pass
  TensorId found_ = -1;         // the maximum of the chunk that comes
  bool keeps_exponentials_ = false;
  TensorId highs_ = -1;  // the maximum that each chunk knew
};
}  // namespace warploom::kernels
