// RowAllReduce: reductions over a whole row, first over the tile, then over the CTAs that share the
// row, so that all of them have the result.
//
// CTAs of a cluster reduce through distributed shared memory. Others exchange in global memory:
// each leaves its part, raises the row's flag, and waits until all have. Every exchange has a place
// and a flag of its own, so that none waits for the readers of the one before. The CTAs of a row
// must run at the same time: the kernel is launched cooperatively.
#pragma once
#include <functional>
#include "kernels/pieces/row_terms.h"

namespace warploom::kernels {
class RowAllReduce {
 public:
  RowAllReduce(RowTiles& tiles, RowTerms& terms)
      : t_(tiles), terms_(terms), rows_(tiles.rows), b_(tiles.b) {}

  // Combines `from`, an element for each of the tile, by a reduction's operation, and binds the
  // reduction to the result.
  void reduce(int reduction, TensorId from);
  // The same over the CTA's own part of the row alone.
  void reduce_own_part(int reduction, TensorId from);

  // What `own`, scalars of rows, are in all CTAs of the row: register tensors with a further extent
  // along the row's dimension. Through global memory.
  std::vector<TensorId> gather(const std::vector<TensorId>& own);

  // Work that an exchange in global memory does between its signal and its wait: behind or before
  // what is there already.
  using Work = std::function<void()>;

  void do_while_waiting(Work work) { meanwhile_.push_back(std::move(work)); }

  void do_first_while_waiting(Work work) { meanwhile_.insert(meanwhile_.begin(), std::move(work)); }

 private:
  // Where scalars of a row lie in the register tensors and the workspace of an exchange.
  struct Layout {
    std::vector<int64_t> own;        // extents of one CTA's part, after that of the exchange
    std::vector<int64_t> all;        // of all CTAs' parts
    std::vector<int64_t> workspace;  // of all exchanges
  };

  Layout exchange_layout() const;
  Index number_of(int64_t exchange) const;  // of all rows' exchanges
  int64_t exchanges_a_row() const;

  int64_t exchanges() const { return exchanges_a_row() * t_.row_groups(); }

  RowTiles& t_;
  RowTerms& terms_;
  const RowReduction& rows_;
  tile::Builder& b_;
  int64_t exchanged_ = 0;  // scalars a row, so far
  TensorId parts_ = -1;
  TensorId flags_ = -1;
  std::vector<Work> meanwhile_;
};
}  // namespace warploom::kernels
