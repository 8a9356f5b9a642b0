// Contractions: nests that are one sum of products, out[batch, m, n] = f(Σ_k A[batch, m, k] ·
// B[batch, k, n], operands…), where every one of m, n and k may be several axes and B's coordinates
// any affine ones: convolutions in one, two or three dimensions.
//
//   y = relu(conv(x, w) + bias), x [8,64,56,56], w [128,64,3,3]      batch {}  m {co}  n {image, p,
//   q}  k {ci, kh, kw} a: w at {co, ci, kh, kw}     b: x at {image, ci, p + kh - 1, q + kw - 1}
//
//   softmax(x · w): the sum, and behind it a maximum and a sum over n, for whom may hold rows of
//   the result whole
//
// Where operands are scaled by blocks the sum is of blocks, each times its scales. An axis that
// blocks divide is two, and so are the dimensions along it, so that no tile goes beyond a block: of
// x [m,k] with scales [m,k/128] k is {k/128, 128}, and the scales vary along the first alone.
#pragma once
#include "loopnest/loop_nest.h"

namespace warploom::loopnest {
struct Contraction {
  LoopNest nest = {};
  size_t sum = 0;  // the value that is the sum over k of products of two elements
  size_t a = 0;
  size_t b = 0;  // of nest.loads; b is the one that varies along the output's fastest axis
  // Reductions behind the sum, each over `column` alone: what they need of a row of the result,
  // whole.
  std::vector<size_t> reductions = {};
  bool scaled = false;  // whether there were factors constant along k: they are behind the sum now,
                        // Σ s·a·b = s · Σ a·b
  std::vector<size_t> scales =
      {};  // of nest.loads: factors that vary along some of k, never along `channel`
  // axes of the nest, ascending; none but batch empty
  std::vector<size_t> batch;
  std::vector<size_t> m;
  std::vector<size_t> n;
  std::vector<size_t> k;
  // the longest of m; of n the output's fastest, the last one
  size_t row = 0;
  size_t column = 0;
  std::optional<size_t> channel;
  std::optional<size_t>
      window;  // axes of k: one that b's pixels do not move along, and the fastest of the others
  // Loads that count as 0 where this is below 0.
  std::map<size_t, Affine> triangles = {};
  // A term of the sum counts only where none of these is below 0: elsewhere what follows chooses by
  // place what does not hold the sum, or a factor is 0 there.   triu(a · b) is where(column ≥ row,
  // sum, 0): bounds {column - row};   a · tril(b): bounds {k - column}. What is left out is 0 times
  // finite elements; docs/design.md says what of others.
  std::vector<Affine> bounds = {};
};

// any: also one that is scaled by blocks, or has reductions behind its sum
std::optional<Contraction> contraction_of(const LoopNest& nest, bool any = false);

inline std::optional<Contraction> contraction_of(const std::vector<LoopNest>& nests,
                                                 bool any = false) {
  return nests.size() == 1 ? contraction_of(nests[0], any) : std::nullopt;
}

// About the part of all terms that lies within the bounds.
double part_within(const Contraction& contraction);

// The product with its sides exchanged: outᵀ = bᵀ·aᵀ.
Contraction exchanged(Contraction contraction);

// The axis that columns of a tile are of beside the fastest, the one before it: where no operand
// behind the sum varies along only one of the two, and no dimension of a tensor follows both.
std::optional<size_t> second_column(const Contraction& contraction);

// The loads that are needed for what follows the sum; nothing where a value there is rounded, or
// where it grows beyond what a tree can hold.
std::optional<std::vector<int>> epilogue_of(const Contraction& contraction);

// How a tile that holds rows whole reduces them. A step keeps the values that one of `reductions`
// combines, an element for each of the tile, in a set of registers: set 0 holds the sum at first;
// one whose value nothing needs any more is taken again.
//
//   softmax: max of x · w, kept in set 0     sum of exp(x · w - max), in set 0 likewise, since all
//   that follows goes on from there
struct RowStep {
  size_t reduction = 0;
  int kept = 0;  // the value
  size_t set = 0;
};

std::vector<RowStep> row_steps(const Contraction& contraction);
}  // namespace warploom::loopnest
