// RowReduction: a nest whose reductions all go over the same axes, taken apart into passes over one
// row.
//
// What the reductions go over is a row; every index along the other axes names one. A term is a
// value of the nest, or a reciprocal. A pass walks over the row once and ends in reductions; each
// later pass needs the results of the one before it. What a pass computed and a later one goes on
// from is kept, each term in a set of registers (or of scratch memory) as large as the row. Worked
// example, log-softmax of x [64,1000]:
//
//   terms    0: x
//            1: max of 0     one number a row
//            2: 0 - 1
//            3: exp 2
//            4: sum of 3     one number a row
//            5: log 4        one number a row
//            6: 2 - 5
//   passes   0: reduces 1, keeps 0 in set 0
//            1: reduces 4, keeps 2 in set 0, in the place of term 0
//            2: stores 6
//
// Dividing by one number a row is multiplying by its reciprocal.
//
// Tiles need not divide a row. Elements past its end count as a padding value when they are loaded;
// a reduction to which that makes a difference is masked: its operand is chosen by coordinate.
#pragma once
#include <map>
#include <optional>
#include "loopnest/loop_nest.h"

namespace warploom::loopnest {
struct RowTerm : Expr {    // its operands are earlier terms
  bool along_row = false;  // whether it varies along the row
  int pass = 0;            // passes that are over when it can be computed
  bool masked = false;     // reduce: see above
  int uses = 0;            // terms that read it
  int nodes = 1;           // operations that it is without sharing any
};

struct RowReduction;

struct RowPass {
  std::vector<int> reduces;  // reductions that end with the pass; the last pass has none
  // Terms for later passes, each with the number of its set; a set changes hands within a pass.
  std::map<int, int> kept;
  // The terms along the row that the pass is for: operands of its reductions, or results.
  std::vector<int> roots(const RowReduction& rows) const;
};

struct RowReduction {
  LoopNest nest;              // every dimension of an access steps along one axis at most
  std::vector<size_t> outer;  // axes of no reduction, slowest first
  std::vector<size_t> row;    // axes of the reductions, slowest first
  // The outer axis of which a tile may take several indices: the one along which neighbours are
  // neighbours in memory, if that is none of the row's; else the last; axes.size() where there is
  // none.
  size_t tiled_outer = 0;
  bool interleaved = false;    // neighbours in memory belong to different rows
  std::vector<size_t> dims;    // of tiles: `tiled_outer` and the row's axes, as memory has them
  std::vector<RowTerm> terms;  // operands before users
  std::vector<RowPass> passes;
  std::vector<int> results;            // the term of each output
  std::vector<double> padding_values;  // by load

  // Reductions of passes 0 and 1 that one pass can compute:
  // Pass 1 is the sum of exp(x - M), M being pass 0's maximum of the same x: the sum is rescaled as
  // the maximum grows.
  bool online_softmax = false;
  // Pass 1 is the first index at which x is what pass 0 finds, its greatest or least, or is no
  // number: the term of the index; -1 where it is not.
  int index_of_extreme = -1;
  // Pass 1 is the sum of (x - M)², M being a number that follows from pass 0's sum of the same x.
  bool centered_squares = false;

  const RowTerm& term(int id) const { return terms[static_cast<size_t>(id)]; }

  const Access& loaded(const RowTerm& load) const { return nest.load_of(load); }

  int64_t size(size_t axis) const { return axis < nest.axes.size() ? nest.axes[axis] : 1; }

  int64_t count(const std::vector<size_t>& axes) const;  // of the indices along them

  int64_t row_size() const { return count(row); }  // elements

  int64_t row_count() const { return count(outer); }

  int64_t kept_sets() const;  // as many as kept terms take

  bool is_along_row(const Access& output) const { return output.uses(row[0]); }

  // Whether what varies so varies along all of `dims`.
  bool fills_tile(const std::vector<bool>& varies) const;
};

// Nothing where the region is no such nest, or reads elements that are not in steps of one along
// each axis.
std::optional<RowReduction> read_rows(const std::vector<LoopNest>& nests);
}  // namespace warploom::loopnest
