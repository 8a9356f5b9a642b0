// RowReduction: a nest whose reductions all go over the same axes, taken apart into passes over one
// row.
//
// What the reductions go over is a row; every index along the other axes names one. A term is a
// value of the nest, or a reciprocal. A pass walks over the row once and ends in reductions; each
// later pass needs the results of the one before it. What a pass computed and a later one goes on
// from is held. Worked example, log-softmax of x [64,1000]:
//
//   terms   0: x   1: max of 0   2: 0 - 1   3: exp 2   4: sum of 3   5: log 4   6: 2 - 5        1,
//   4 and 5 are one number a row passes  0: reduces 1, holds 0      1: reduces 4, holds 2 (in 0's
//   place)      2: stores 6
//
// Dividing by one number a row is multiplying by its reciprocal. Elements past a row's end, where
// tiles do not divide it, count as `fills` when they are loaded; a reduction to which that makes a
// difference is masked: its operand is chosen by coordinate.
#pragma once
#include "loopnest/loop_nest.h"

namespace warploom::loopnest {
struct RowTerm : Expr {  // its operands are earlier terms
  bool along = false;    // whether it varies along the row
  int phase = 0;         // passes that are over when it can be computed
  bool masked = false;   // reduce: see above
  // how many terms read it; how many operations it is without sharing any
  int uses = 0;
  int nodes = 1;
};

struct RowPass {
  std::vector<int> reduces;  // reductions that end with the pass; the last pass has none
  std::map<int, int> held;   // terms for later passes, each with the number of its slot; a slot
                             // changes hands within a pass
  std::vector<int> roots(
      const struct RowReduction& rows) const;  // the terms along the row that the pass is for
};

struct RowReduction {
  LoopNest nest;              // every dimension of an access steps along one axis at most
  std::vector<size_t> outer;  // axes of no reduction, slowest first
  std::vector<size_t> row;    // axes of the reductions, slowest first
  // The outer axis of which a tile may take several indices: the one whose neighbours are
  // neighbours in memory, if that is none of the row's (`lanes_outside`); else the last;
  // axes.size() where there is none.
  size_t across = 0;
  bool lanes_outside = false;
  std::vector<size_t> dims;    // of tiles: `across` and the row's axes, as memory has them
  std::vector<RowTerm> terms;  // arguments before users
  std::vector<RowPass> passes;
  std::vector<int> results;   // the term of each output
  std::vector<double> fills;  // by load
  // Pass 1 is nothing but the sum of exp(x - M), M being pass 0's maximum of the same x: one pass
  // can do both, which scales the sum as the maximum grows.
  bool joint = false;
  // Pass 1 is nothing but the first index at which x is what pass 0 finds, its greatest or least,
  // or is no number: one pass can keep both. The term of the index; none: -1.
  int first_place = -1;
  // Pass 1 is nothing but the sum of (x - M)², M being a number that pass 0 finds, whose only
  // result is the sum of the same x.
  bool spread = false;

  const RowTerm& term(int id) const { return terms[at(id)]; }

  const Access& loaded(const RowTerm& load) const { return nest.loads[at(load.load)]; }

  int64_t size(size_t axis) const { return axis < nest.axes.size() ? nest.axes[axis] : 1; }

  int64_t count(const std::vector<size_t>& axes) const;

  int64_t row_size() const { return count(row); }  // elements

  int64_t row_count() const { return count(outer); }  // rows

  int64_t slots() const;  // that held terms take

  bool along(const Access& output) const {
    return output.uses(row[0]);
  }  // whether it is stored along the row

  bool fills_tile(const std::vector<bool>& varies) const;  // whether it varies along all of `dims`
};

// Nothing where the region is no such nest, or reads elements that are not in steps of one along
// each axis.
std::optional<RowReduction> read_rows(const std::vector<LoopNest>& nests);
}  // namespace warploom::loopnest
