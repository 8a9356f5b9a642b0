// What a sum of products is made of: the factors of one term, and the part of the iteration domain
// where terms count.
#pragma once
#include <map>
#include <optional>
#include "loopnest/loop_nest.h"

namespace warploom::loopnest {
// The coordinate that is at least 0 just where a condition holds (or, without `holds`, where it
// does not). Conditions compare two indices x and y: x < y, or, as graphs spell x ≤ y, where(x < y,
// 1, x == y).
//
//   column < row   →   row - column - 1        its contrary   →   column - row
std::optional<Affine> constraint_of(const LoopNest& nest, int condition, bool holds);

// The factors of a term that is summed over some axes.
//
//   Σ_k 0.5 · s[m] · a[m,k] · b[k,n]   →   loads {a, b}, constant_along_sum {s}, number 0.5
class TermFactors {
 public:
  TermFactors(const LoopNest& nest, std::vector<size_t> summed_axes)
      : nest_(nest), summed_(std::move(summed_axes)) {}

  // Whether a value is a product of factors, which are added to these.
  bool take(int value);

  // Takes the loads that lack one of the summed axes out of `loads`: factors that scale blocks.
  std::vector<size_t> take_block_scales();

  std::vector<size_t> loads = {};            // that vary along the summed axes
  std::vector<int> constant_along_sum = {};  // values that do not
  double number = 1;                         // what constants come to
  std::map<size_t, Affine> triangular = {};  // by load: it counts as 0 where this is below 0

 private:
  bool take_load(const Expr& value);
  bool take_triangle(const Expr& where);

  const LoopNest& nest_;
  std::vector<size_t> summed_;
  int taken_ = 0;  // values so far
};
}  // namespace warploom::loopnest
