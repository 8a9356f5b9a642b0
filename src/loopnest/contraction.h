// Contraction: a nest that is one sum of products,
//
//   out[batch, m, n] = f(Σ_k A[batch, m, k] · B[batch, k, n], operands …)
//
// Each of batch, m, n and k may be several axes, and the coordinates of B any affine ones: so
// convolutions in one, two or three dimensions are contractions. Worked examples:
//
//   y = relu(conv(x, w) + bias), x [8,64,56,56], w [128,64,3,3]
//     batch {}   m {co}   n {image, p, q}   k {ci, kh, kw}
//     a: w at {co, ci, kh, kw}
//     b: x at {image, ci, p + kh - 1, q + kw - 1}
//
//   softmax(x · w)
//     the sum, and behind it a maximum and a sum over n, for kernels that hold whole rows of the
//     result
//
// Where operands are scaled by blocks the sum is of blocks, each times its scales. An axis that
// blocks divide is two axes, and so are the dimensions along it, so that no tile goes beyond a
// block: of x [m,k] with scales [m,k/128] k is {k/128, 128}, and the scales vary along the first
// alone.
#pragma once
#include <map>
#include <optional>
#include "loopnest/loop_nest.h"

namespace warploom::loopnest {
struct Contraction {
  LoopNest nest = {};
  size_t sum = 0;  // the value that is the sum over k of products of two elements
  // Of nest.loads; b is the one that varies along the fastest axis of the output.
  size_t a = 0;
  size_t b = 0;
  // Reductions behind the sum, each over `column` alone: they need whole rows of the result.
  std::vector<size_t> reductions = {};
  // Whether there were factors constant along k: they are behind the sum now, Σ s·a·b = s · Σ a·b.
  bool scaled = false;
  // Of nest.loads: factors that vary along some axes of k, never along `channel`.
  std::vector<size_t> scales = {};
  // Axes of the nest, ascending but for n, whose last is `column`; none but batch is empty.
  std::vector<size_t> batch;
  std::vector<size_t> m;
  std::vector<size_t> n;
  std::vector<size_t> k;
  size_t row = 0;     // the longest of m
  size_t column = 0;  // the fastest axis of the output: the last of n
  // Axes of k: one that the pixels of b do not move along, and the fastest of the others.
  std::optional<size_t> channel;
  std::optional<size_t> window;
  // Triangular operands, by load: an element counts as 0 where the coordinate is below 0.
  std::map<size_t, Affine> triangular_operands = {};

  // Whether products 0 · x of a triangular operand are left out: of an x that is infinite or NaN
  // the sum would be NaN.
  bool skips_zeros() const { return !triangular_operands.empty(); }

  // Constraints of the iteration domain: a term of the sum counts only where none of them is below
  // 0. Elsewhere what follows chooses by place what does not hold the sum, or a factor is 0 there:
  //   triu(a · b), that is where(column ≥ row, sum, 0)   {column - row}
  //   a · tril(b)                                        {k - column}
  // What is left out is 0 times finite elements; docs/design.md says what of others.
  std::vector<Affine> domain_constraints = {};

  const Access& access_a() const { return nest.loads[a]; }

  const Access& access_b() const { return nest.loads[b]; }
};

// What may be stored of a contraction: a result, or several (the sum and what an activation makes
// of it), each along all axes but those of k; and, where rows are reduced, the column.
enum class Results : uint8_t { one, several };

// Nothing where the nest is no contraction; with `any` also one that is scaled by blocks, or has
// reductions behind its sum.
std::optional<Contraction> contraction_of(const LoopNest& nest, bool any = false,
                                          Results results = Results::one);

inline std::optional<Contraction> contraction_of(const std::vector<LoopNest>& nests,
                                                 bool any = false, Results results = Results::one) {
  return nests.size() == 1 ? contraction_of(nests[0], any, results) : std::nullopt;
}

// About the part of all terms that meet the constraints of the domain.
double part_within(const Contraction& contraction);

// The same product with its operands swapped: outᵀ = bᵀ·aᵀ.
Contraction with_swapped_ab(Contraction contraction);

// The axis that the columns of a tile are of besides the fastest one, the axis before it: where no
// operand behind the sum varies along only one of the two, and no dimension of a tensor follows
// both.
std::optional<size_t> second_column(const Contraction& contraction);

// The loads that the epilogue, all that follows the sum, needs. Nothing where a value there is
// rounded, or where it grows beyond what a tree can hold.
std::optional<std::vector<int>> epilogue_of(const Contraction& contraction);

// Whether a result stays between bounds however large the sum is, as that of tanh(x · w) · s
// does: but for where it lies between them, what a long sum loses is then large beside it.
bool saturates(const Contraction& contraction);

// How a tile that holds whole rows reduces them. A step keeps the values that one of `reductions`
// combines, an element for each of the tile, in a set of registers. Set 0 holds the sum at first; a
// set whose value nothing needs any more is taken again. Worked example, softmax(x · w):
//
//   the maximum of x · w                kept in set 0
//   the sum of exp(x · w - maximum)     in set 0 as well, since all that follows goes on from there
struct RowStep {
  size_t reduction = 0;
  int kept = 0;  // the value
  size_t set = 0;
};

std::vector<RowStep> row_steps(const Contraction& contraction);
}  // namespace warploom::loopnest
